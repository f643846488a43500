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


def pids_of_stand_ins(variables: "dict[str, str]") -> "list[int]":
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


class Ends(StandInTest):
    def test_one_that_is_killed_in_between_is_started_once_more_and_says_what_is_lost(self) -> None:
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
            around.lost[0], "^what was used before .* started again: it was ended by SIGKILL"
        )
        self.assertGreater(around.to_dict()["duration_s"], 0.3)
        self.assertIsNone(before.gpu_s)
        self.assertEqual(
            before.lost,
            ["the gpumon program ended before it told what was used: it was ended by SIGKILL"],
        )
        self.assertRegex(str(before), r"^[\d.]+ m?s, GPU not measured: the gpumon program ended")

    def test_one_that_always_ends_is_given_up_with_one_warning(self) -> None:
        self.say("die 1")
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
            "ends again and again: it has ended with exit code 1: the stand-in was told to",
        )
        self.assertEqual(warning.filename, __file__)
        self.assertIsNone(m.gpu_s)
        self.assertRegex(m.lost[0], "again and again")
        with self.assertRaisesRegex(gpumon.ProgramError, "again and again"):
            gpumon.snapshot()

    def test_one_that_ends_while_it_is_asked(self) -> None:
        self.say("die 3")
        with gpumon.measure() as m:
            pass
        self.assertIsNone(m.gpu_s)
        self.assertIn("ended before it told", m.lost[0])

    def test_what_is_no_json_ends_it(self) -> None:
        self.say("garbage")
        with gpumon.measure() as m:
            pass
        self.assertIn("'Segmentation fault', which is no JSON object; reinstall", m.lost[0])

    def test_an_error_is_an_exception_or_what_is_lost(self) -> None:
        with self.assertRaisesRegex(gpumon.RequestError, "no such thing; begin it first"):
            gpumon.snapshot()
        with gpumon.measure() as m:
            pass
        helper._current._process.send(b'{"forget": %d}\n' % m._run.number)
        self.assertEqual(
            (m.lost, m.gpu_s), (["the stand-in has no such thing; begin it first"], None)
        )


class Is(StandInTest):
    def test_one_that_reads_nothing_is_not_waited_for(self) -> None:
        self.say("mute")
        measurements = []
        with gpumon.measure():
            pass
        began = time.monotonic()
        for number in range(20_000):
            with gpumon.measure(f"{number}" * 20) as m:
                pass
            measurements.append(m)
        self.assertGreater(len(helper._current._process._waiting), 10_000, "its pipe is not full")
        # A blocking write would wait forever.
        self.assertLess(time.monotonic() - began, PATIENCE_S)
        with mock.patch.object(mail, "PATIENCE_S", 0.3):
            self.assertRegex(m.lost[0], "has not answered for 0 s: `gpumon doctor`")
        self.assertIsNone(m.gpu_s)

    def test_one_that_does_not_answer_is_waited_for_in_full_only_once(self) -> None:
        self.say("slow 1.5")
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
        # Output since then shows that the program is alive.
        until = time.monotonic() + PATIENCE_S
        self.assertTrue(helper.current().wait(lambda: not helper.current()._mail._is_silent, until))
        with gpumon.measure() as m:
            pass
        self.assertEqual(m.gpu_s, 9.8)

    def test_error_without_number_keeps_earlier_answers(self) -> None:
        batches = [[b'{"id": 1, "cost": {}}', b'{"error": "line 3 is no request"}']]
        both, answers, box = threading.Event(), {}, mail.Mail()
        # No answer arrives before both requests are waiting.
        program = mock.Mock(
            failure=None,
            receive=lambda _: batches.pop() if both.wait(PATIENCE_S) and batches else [],
        )

        def ask(number: int) -> None:
            answers[number] = box.answer(number, {}, program)

        asking = [threading.Thread(target=ask, args=(number,)) for number in (1, 2)]
        for thread in asking:
            thread.start()
        until = time.monotonic() + PATIENCE_S
        while len(box._expected) < 2 and time.monotonic() < until:
            time.sleep(0.01)
        both.set()
        for thread in asking:
            thread.join(PATIENCE_S)
        self.assertEqual(answers, {1: {"id": 1, "cost": {}}, 2: {"error": "line 3 is no request"}})

    def test_one_that_goes_on_to_read_nothing_is_replaced(self) -> None:
        self.say("mute")
        with gpumon.measure() as first:
            pass
        # The stand-in has read its faults by then, so others can be written.
        self.heard(1)
        with mock.patch.object(process, "MOST_WAITING", 100):
            for _ in range(20_000):
                with gpumon.measure():
                    self.say()
                if first._run.lost:
                    break
            with gpumon.measure() as after:
                pass
        self.assertEqual(after.gpu_s, 9.8)
        self.assertEqual(
            first.lost, ["the gpumon program ended before it told what was used: it reads nothing"]
        )

    def test_one_without_a_driver_warns_once(self) -> None:
        self.say("failed")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(2):
                with gpumon.measure() as m:
                    pass
                m.to_dict()
        self.assertEqual(
            [str(one.message) for one in caught],
            ["gpumon measures nothing: no NVIDIA driver: install it"],
        )

    def test_a_warning_that_is_an_error_reaches_who_asks_and_no_thread_in_the_background(
        self,
    ) -> None:
        self.say("failed")
        code = (
            "import time, threading\n"
            "stream = gpumon.stream(0.1)\n"
            "time.sleep(0.5)\n"
            "print([thread.name for thread in threading.enumerate()])\n"
            "for _ in range(2):\n"
            "    try: gpumon.snapshot()\n"
            "    except Exception as error: print(type(error).__name__)\n"
        )
        done = self.python(code)
        self.assertEqual(done.stderr, "")
        self.assertEqual(done.stdout, "['MainThread', 'gpumon']\nGpumonWarning\nRequestError\n")

    def test_none_warns_once_and_the_code_runs(self) -> None:
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

    def test_many_threads_have_their_own_answers(self) -> None:
        failures = []

        def work() -> None:
            for _ in range(30):
                with gpumon.measure(threading.current_thread().name) as m:
                    pass
                if m.to_dict()["name"] != threading.current_thread().name or m.gpu_s != 9.8:
                    failures.append(m)

        threads = [threading.Thread(target=work, name=f"thread {number}") for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        self.assertEqual(failures, [])
        self.assertEqual(len(pids_of_stand_ins(self.variables)), 1)

    def test_an_interrupt_while_an_answer_is_awaited_harms_none_that_follows(self) -> None:
        self.say("slow 1")
        with gpumon.measure() as m:
            pass
        signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        signal.setitimer(signal.ITIMER_REAL, 0.3)
        with self.assertRaises(KeyboardInterrupt):
            m.gpu_s
        self.assertEqual(m.gpu_s, 9.8)


class Processes(StandInTest):
    def test_a_program_ends_cleanly_and_takes_it_along(self) -> None:
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
                done = self.python(measured + rest)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "", ""))
                self.assertLess(time.monotonic() - began, 8)
                self.assertEqual(pids_of_stand_ins(self.variables), [])

    def test_it_is_ended_also_if_it_does_not_end_by_itself(self) -> None:
        self.say("stubborn")
        done = self.python("with gpumon.measure(): pass")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(pids_of_stand_ins(self.variables), [])

    def test_a_program_that_is_killed_leaves_nothing_behind(self) -> None:
        done = self.python(
            "import os, signal\nwith gpumon.measure():\n  os.kill(os.getpid(), signal.SIGKILL)"
        )
        self.assertEqual(done.returncode, -signal.SIGKILL)
        until = time.monotonic() + 30
        while pids_of_stand_ins(self.variables) and time.monotonic() < until:
            time.sleep(0.05)
        self.assertEqual(pids_of_stand_ins(self.variables), [])

    def test_an_interrupt_of_the_terminal_is_not_meant_for_it(self) -> None:
        code = (
            "import os, signal, time\nos.setpgrp()\n"
            "with gpumon.measure() as m:\n"
            "  m.to_dict()\n"
            "  try:\n    os.killpg(0, signal.SIGINT); time.sleep(9)\n  except KeyboardInterrupt: "
            "pass\n"
            "print(m.gpu_s, m.lost)"
        )
        self.assertEqual(self.python(code).stdout, "9.8 []\n")

    def test_a_broken_connection_kills_nobody_who_has_asked_for_sigpipe(self) -> None:
        code = (
            "import os, signal, time\nsignal.signal(signal.SIGPIPE, signal.SIG_DFL)\n"
            "with gpumon.measure() as m:\n"
            "  os.kill(helper.current()._process.pid, signal.SIGKILL); time.sleep(0.3)\n"
            "print(len(m.lost))"
        )
        self.assertEqual(self.python(code).stdout, "1\n")

    def test_a_forked_child_starts_its_own_only_where_it_measures(self) -> None:
        code = (
            "import os, sys\n"
            "with gpumon.measure('parent') as m:\n"
            "  child = os.fork()\n"
            "  if child == 0:\n"
            "    print(helper.current()._process, m.lost, flush=True)\n"
            "    with gpumon.measure('child') as n: pass\n"
            "    print(n.gpu_s, flush=True)\n"
            "    sys.exit()\n"
            "  os.waitpid(child, 0)\n"
            "print(m.gpu_s, m.lost)"
        )
        done = self.python(code)
        lines = done.stdout.splitlines()
        self.assertEqual(done.stderr, "")
        self.assertRegex(
            lines[0],
            r"^None \['it was begun in the process \d+, which alone knows what was used'\]$",
        )
        self.assertEqual(lines[1:], ["9.8", "9.8 []"])
        begun = {line["name"]: line["pid"] for line in self.heard() if "begin" in line}
        self.assertEqual(len(set(begun.values())), 2)

    def test_workers_of_multiprocessing(self) -> None:
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
                self.assertEqual(self.script(code), "[9.8, 9.8, 9.8, 9.8]\n9.8 []\n")
        self.assertEqual(pids_of_stand_ins(self.variables), [])

    def test_a_finalizer_may_forget_at_any_time(self) -> None:
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
