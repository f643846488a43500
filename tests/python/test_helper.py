"""All failures of the program behind the package. None of them affects the measured code."""

import gc
import os
import signal
import threading
import time
import unittest
import warnings
from unittest import mock

import gpumon
import gpumon._helper as helper
import gpumon._mail as mail
import gpumon._process as process
from stand_in import PATIENCE_S, StandInTest


def list_stand_in_pids(variables: "dict[str, str]") -> "list[int]":
    """Return the PIDs of stand-ins with these variables."""
    wanted = f"STANDIN_HEARD={variables['STANDIN_HEARD']}\0".encode()
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with (
                open(f"/proc/{pid}/environ", "rb") as environ,
                open(f"/proc/{pid}/cmdline", "rb") as command,
            ):
                if wanted in environ.read() and b"stand_in_program.py" in command.read():
                    found.append(int(pid))
        except OSError:
            continue
    return found


class EndOfHelper(StandInTest):
    def test_killed_program_is_restarted_and_loss_is_reported(self) -> None:
        with gpumon.measure("before") as before:
            pass
        with gpumon.measure("around") as around:
            self.assertEqual(around.gpu_s, 9.8)
            os.kill(helper._current._process.pid, signal.SIGKILL)
            time.sleep(0.3)
            with gpumon.measure("after") as after:
                pass
        self.assertEqual((after.gpu_s, after.lost), (9.8, []))
        self.assertEqual(around.gpu_s, 9.8)
        self.assertRegex(
            around.lost[0], "^the usage before .* was restarted: it was ended by SIGKILL"
        )
        self.assertGreater(around.to_dict()["duration_s"], 0.3)
        self.assertIsNone(before.gpu_s)
        self.assertEqual(
            before.lost,
            ["the gpumon program ended before it reported the usage: it was ended by SIGKILL"],
        )
        self.assertRegex(str(before), r"^[\d.]+ m?s, GPU not measured: the gpumon program ended")

    def test_repeated_program_crashes_warn_only_once(self) -> None:
        self.set_faults("die 1")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            until = time.monotonic() + PATIENCE_S
            while not caught and time.monotonic() < until:
                with gpumon.measure():
                    time.sleep(0.1)
            for _ in range(3):
                with gpumon.measure() as m:
                    pass
        (warning,) = caught
        self.assertIs(warning.category, gpumon.GpumonWarning)
        self.assertRegex(
            str(warning.message),
            "ends repeatedly: it exited with code 1: the stand-in was set to",
        )
        self.assertEqual(warning.filename, __file__)
        self.assertIsNone(m.gpu_s)
        self.assertRegex(m.lost[0], "ends repeatedly")
        with self.assertRaisesRegex(gpumon.ProgramError, "ends repeatedly"):
            gpumon.snapshot()

    def test_cost_is_lost_if_program_ends_during_request(self) -> None:
        self.set_faults("die 3")
        with gpumon.measure() as m:
            pass
        self.assertIsNone(m.gpu_s)
        self.assertIn("ended before it reported", m.lost[0])

    def test_invalid_program_output_loses_measurement(self) -> None:
        self.set_faults("garbage")
        with gpumon.measure() as m:
            pass
        self.assertIn("'Segmentation fault', which is not a JSON object; reinstall", m.lost[0])

    def test_request_error_is_raised_or_reported_as_loss(self) -> None:
        with self.assertRaisesRegex(gpumon.RequestError, "no such measurement; start it first"):
            gpumon.snapshot()
        with gpumon.measure() as m:
            pass
        helper._current._process.send(b'{"forget": %d}\n' % m._run.number)
        self.assertEqual(
            (m.lost, m.gpu_s), (["the stand-in has no such measurement; start it first"], None)
        )


class HelperResponses(StandInTest):
    def test_program_that_reads_nothing_does_not_block(self) -> None:
        self.set_faults("mute")
        measurements = []
        with gpumon.measure():
            pass
        began = time.monotonic()
        for number in range(20_000):
            with gpumon.measure(f"{number}" * 20) as m:
                pass
            measurements.append(m)
        self.assertGreater(
            len(helper._current._process._waiting), 10_000, "the program's pipe is not full"
        )
        # A blocking write would wait forever.
        self.assertLess(time.monotonic() - began, PATIENCE_S)
        with mock.patch.object(mail, "PATIENCE_S", 0.3):
            self.assertRegex(m.lost[0], "has not answered for 0 s: run `gpumon doctor`")
        self.assertIsNone(m.gpu_s)

    def test_measurements_wait_for_unresponsive_program_only_once(self) -> None:
        self.set_faults("slow 1.5")
        with (
            mock.patch.object(mail, "PATIENCE_S", 0.4),
            mock.patch.object(mail, "IMPATIENCE_S", 0.1),
        ):
            waited = []
            for _ in range(3):
                with gpumon.measure() as m:
                    pass
                began = time.monotonic()
                self.assertIn("has not answered for", m.lost[0])
                waited.append(time.monotonic() - began)
        self.assertGreaterEqual(waited[0], 0.4)
        self.assertLess(max(waited[1:]), 0.4)
        # When the late answer arrives, the program no longer counts as silent.
        until = time.monotonic() + PATIENCE_S
        self.assertTrue(
            helper.current_helper().wait(
                lambda: not helper.current_helper()._mail._is_silent, until
            )
        )
        with gpumon.measure() as m:
            pass
        self.assertEqual(m.gpu_s, 9.8)

    def test_error_without_number_keeps_earlier_responses(self) -> None:
        batches = [[b'{"id": 1, "cost": {}}', b'{"error": "line 3 is not a request"}']]
        both, answers, box = threading.Event(), {}, mail.MessageDispatcher()
        # The mock program answers only after `box` expects answers to both requests.
        program = mock.Mock(
            failure=None,
            receive=lambda _: batches.pop() if both.wait(PATIENCE_S) and batches else [],
        )

        def send_request(number: int) -> None:
            answers[number] = box.send_request(number, {}, program)

        asking = [threading.Thread(target=send_request, args=(number,)) for number in (1, 2)]
        for thread in asking:
            thread.start()
        until = time.monotonic() + PATIENCE_S
        while len(box._expected) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        both.set()
        for thread in asking:
            thread.join(PATIENCE_S)
        self.assertEqual(
            answers, {1: {"id": 1, "cost": {}}, 2: {"error": "line 3 is not a request"}}
        )

    def test_program_that_never_reads_is_replaced(self) -> None:
        self.set_faults("mute")
        with gpumon.measure() as first:
            pass
        # When the stand-in has received a line, it has already read its faults. So the test can set
        # others.
        self.wait_for_lines(1)
        with mock.patch.object(process, "MAX_WAITING_LINES", 100):
            for _ in range(20_000):
                with gpumon.measure():
                    self.set_faults()
                if first._run.lost:
                    break
            with gpumon.measure() as after:
                pass
        self.assertEqual(after.gpu_s, 9.8)
        self.assertEqual(
            first.lost,
            ["the gpumon program ended before it reported the usage: it does not read its input"],
        )

    def test_missing_driver_warns_once(self) -> None:
        self.set_faults("failed")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                with gpumon.measure() as m:
                    pass
                m.to_dict()
        self.assertEqual(
            [str(one.message) for one in caught],
            ["gpumon measures no GPUs: no NVIDIA driver: install it"],
        )

    def test_warning_raised_as_error_reaches_only_caller(
        self,
    ) -> None:
        self.set_faults("failed")
        code = (
            "import time, threading\n"
            "stream = gpumon.stream(0.1)\n"
            "time.sleep(0.5)\n"
            "print([thread.name for thread in threading.enumerate()])\n"
            "for _ in range(2):\n"
            "    try: gpumon.snapshot()\n"
            "    except Exception as error: print(type(error).__name__)\n"
        )
        done = self.run_code(code)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout, "['MainThread', 'gpumon']\nGpumonWarning\nRequestError\n")

    def test_missing_program_warns_once_and_code_runs(self) -> None:
        missing = gpumon.GpumonNotFound("the gpumon program is missing; reinstall it")
        with mock.patch.object(helper, "find_gpumon_bin", side_effect=missing):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for _ in range(2):
                    with gpumon.measure() as m:
                        done = True
                gpumon.mark("epoch 3")
        self.assertTrue(done)
        self.assertEqual([one.filename for one in caught], [__file__])
        self.assertEqual((m.gpu_s, m.stored(), m.lost), (None, None, [str(missing)]))
        with self.assertRaisesRegex(gpumon.GpumonError, "reinstall it"):
            gpumon.snapshot()

    def test_threads_receive_separate_responses(self) -> None:
        failures = []

        def measure_repeatedly() -> None:
            for _ in range(30):
                with gpumon.measure(threading.current_thread().name) as m:
                    pass
                if m.to_dict()["name"] != threading.current_thread().name or m.gpu_s != 9.8:
                    failures.append(m)

        threads = [
            threading.Thread(target=measure_repeatedly, name=f"thread {number}")
            for number in range(8)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(failures, [])
        self.assertEqual(len(list_stand_in_pids(self.variables)), 1)

    def test_interrupted_request_does_not_affect_later_ones(self) -> None:
        self.set_faults("slow 1")
        with gpumon.measure() as m:
            pass
        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with self.assertRaises(KeyboardInterrupt):
            m.gpu_s
        self.assertEqual(m.gpu_s, 9.8)


class Processes(StandInTest):
    def test_helper_ends_with_its_program(self) -> None:
        measured = "with gpumon.measure() as m: pass\n"
        for rest in (
            "m.to_dict()",
            "pass",
            "raise SystemExit(0)",
            "import sys; sys.exit()",
            "m.start()",
        ):
            with self.subTest(rest):
                began = time.monotonic()
                done = self.run_code(measured + rest)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
                self.assertLess(time.monotonic() - began, 8)
                self.assertEqual(list_stand_in_pids(self.variables), [])

    def test_helper_that_does_not_exit_is_killed(self) -> None:
        self.set_faults("stubborn")
        done = self.run_code("with gpumon.measure(): pass")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(list_stand_in_pids(self.variables), [])

    def test_helper_does_not_outlive_killed_program(self) -> None:
        done = self.run_code(
            "import os, signal\nwith gpumon.measure():\n  os.kill(os.getpid(), signal.SIGKILL)"
        )
        self.assertEqual(done.returncode, -signal.SIGKILL)
        until = time.monotonic() + 30
        while list_stand_in_pids(self.variables) and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(list_stand_in_pids(self.variables), [])

    def test_terminal_interrupt_does_not_end_helper(self) -> None:
        code = (
            "import os, signal, time\nos.setpgrp()\n"
            "with gpumon.measure() as m:\n"
            "  m.to_dict()\n"
            "  try:\n    os.killpg(0, signal.SIGINT); time.sleep(9)\n  except KeyboardInterrupt: "
            "pass\n"
            "print(m.gpu_s, m.lost)"
        )
        self.assertEqual(self.run_code(code).stdout, "9.8 []\n")

    def test_broken_connection_does_not_raise_sigpipe(self) -> None:
        code = (
            "import os, signal, time\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
            "with gpumon.measure() as m:\n"
            "  os.kill(helper.current_helper()._process.pid, signal.SIGKILL); time.sleep(0.3)\n"
            "print(len(m.lost))"
        )
        self.assertEqual(self.run_code(code).stdout, "1\n")

    def test_forked_child_starts_separate_helper_when_measuring(self) -> None:
        code = (
            "import os, sys\n"
            "with gpumon.measure('parent') as m:\n"
            "  child = os.fork()\n"
            "  if child == 0:\n"
            "    print(helper.current_helper()._process, m.lost, flush=True)\n"
            "    with gpumon.measure('child') as n: pass\n"
            "    print(n.gpu_s, flush=True)\n"
            "    sys.exit()\n"
            "  os.waitpid(child, 0)\n"
            "print(m.gpu_s, m.lost)"
        )
        done = self.run_code(code)
        lines = done.stdout.splitlines()
        self.assertEqual(done.stderr, "")
        self.assertRegex(
            lines[0],
            r"^None \['the measurement was started in the process \d+, and only that process has "
            r"its numbers'\]$",
        )
        self.assertEqual(lines[1:], ["9.8", "9.8 []"])
        begun = {line["name"]: line["pid"] for line in self.wait_for_lines() if "begin" in line}
        self.assertEqual(len(set(begun.values())), 2)

    def test_multiprocessing_workers_measure_themselves(self) -> None:
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method):
                code = (
                    "import multiprocessing, os\n"
                    "def work(number):\n"
                    "  import gpumon, gpumon._helper as helper\n"
                    f"  helper.find_gpumon_bin = lambda: {helper.find_gpumon_bin()!r}\n"
                    "  with gpumon.measure() as m: pass\n"
                    "  return m.gpu_s\n"
                    "if __name__ == '__main__':\n"
                    f"  context = multiprocessing.get_context({method!r})\n"
                    "  with gpumon.measure() as m:\n"
                    "    with context.Pool(2) as pool:\n"
                    "      print(pool.map(work, range(4)))\n"
                    "  print(m.gpu_s, m.lost)\n"
                )
                self.assertEqual(self.run_script(code), "[9.8, 9.8, 9.8, 9.8]\n9.8 []\n")
        self.assertEqual(list_stand_in_pids(self.variables), [])

    def test_finalizer_does_not_wait_for_locks(self) -> None:
        """A finalizer must not wait for a lock that its own thread holds."""
        current = helper._current
        with gpumon.measure() as m:
            pass
        with current._mail.changed, current._starting, current._process._writing:
            del m
            gc.collect()
        self.assertEqual(current._runs, {})


if __name__ == "__main__":
    unittest.main()
