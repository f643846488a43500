"""The package with the real program and simulated GPUs: the numbers must match the scenario."""

import asyncio
import datetime
import os
import signal
import subprocess
import sys
import time
import unittest
import warnings

import gpumon
import gpumon._helper as helper
from gpumon._text import GIB
from program import fake_nvml_variables
from simulated import GPUS, PATIENCE_S, SimulatedGpuTest, make_constant_process


class Costs(SimulatedGpuTest):
    def test_measured_values_match_scenario(self) -> None:
        self.set_scenario(GPUS + make_constant_process(os.getpid()))
        self.warm_up()
        with gpumon.measure("train") as m:
            time.sleep(2)
            gpumon.mark("epoch 3")
        self.assertAlmostEqual(m.gpu_s, m.duration_s / 2, delta=0.1 * m.duration_s)
        self.assertEqual(
            (m.peak_memory_bytes, m.memory_change_bytes, m.shared, m.lost), (4 * GIB, 0, False, [])
        )
        self.assertAlmostEqual(m.energy_joules, 300 * m.duration_s, delta=30 * m.duration_s)
        self.assertEqual(m.energy_joules_range, (m.energy_joules, m.energy_joules))
        (gpu,) = m.gpus
        self.assertEqual((gpu.index, gpu.name), (0, "NVIDIA H200"))
        self.assertAlmostEqual(gpu.held_s, m.duration_s, delta=0.2)
        self.assertEqual(m.limits, gpu.limits)
        self.assertAlmostEqual(sum(share.percent for share in m.limits.shares), 100, delta=5)
        self.assertEqual([mark["text"] for mark in m.to_dict()["marks"]], ["epoch 3"])
        stored = m.stored()
        self.assertEqual((stored["gpus"], stored["peak_memory_bytes"]), (["NVIDIA H200"], 4 * GIB))
        self.assertAlmostEqual(stored["duration_s"], m.duration_s, delta=0.01)
        self.assertFalse(
            [one for one in stored.values() if isinstance(one, float) and one.is_integer()]
        )

    def test_growing_memory_on_shared_gpu_is_measured(self) -> None:
        start_ms = round(time.time() * 1000)
        grows = (
            f"[[process]]\ngpu = 0\npid = {os.getpid()}\nmemory = [[0, '1 GiB'], [5, '1 GiB'], "
            f"[5, '3 GiB']]\nsm_percent = 10\n"
        )
        self.set_scenario(
            f"start_ms = {start_ms}\n" + GPUS + grows + make_constant_process(1, memory="2 GiB")
        )
        self.warm_up()
        with gpumon.measure() as m:
            time.sleep(max(0.0, start_ms / 1000 + 6.5 - time.time()))
        self.assertEqual(
            (m.peak_memory_bytes, m.memory_change_bytes, m.shared), (3 * GIB, 2 * GIB, True)
        )
        least, most = m.energy_joules_range
        self.assertLess(least, most)
        self.assertTrue(least <= m.energy_joules <= most)
        self.assertIn("shared)", str(m))

    def test_child_processes_are_counted(self) -> None:
        sleeper = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
        self.addCleanup(sleeper.wait)
        self.addCleanup(sleeper.kill)
        forked = os.fork()
        if forked == 0:
            time.sleep(100)
            os._exit(0)
        self.addCleanup(os.waitpid, forked, 0)
        self.addCleanup(os.kill, forked, signal.SIGKILL)
        self.set_scenario(
            GPUS
            + make_constant_process(sleeper.pid, memory="2 GiB", sm_percent=20)
            + make_constant_process(forked, gpu=1, memory="1 GiB")
        )
        self.warm_up()
        with gpumon.measure() as m:
            time.sleep(1)
            with gpumon.measure(pid=sleeper.pid) as other:
                time.sleep(1)
        self.assertEqual(
            (m.peak_memory_bytes, [gpu.index for gpu in m.gpus], m.shared), (3 * GIB, [0, 1], False)
        )
        self.assertEqual(
            (other.peak_memory_bytes, [gpu.index for gpu in other.gpus]), (2 * GIB, [0])
        )

    def test_measurement_without_gpu_is_empty(self) -> None:
        self.set_scenario(GPUS)
        self.warm_up()
        with gpumon.measure() as m:
            time.sleep(0.3)
        self.assertEqual((m.gpus, m.stored(), m.lost), ([], None, []))
        self.assertRegex(str(m), "^[0-9]+ ms, no GPU used$")
        self.assertEqual(len(m.to_pandas()), 0)
        self.assertIn("peak_memory_bytes", m.to_polars().columns)

    def test_missing_driver_warns_with_reason(self) -> None:
        os.environ["GPUMON_SOURCE"] = "nvml"
        os.environ["GPUMON_NVML_LIB"] = str(self.folder / "none.so")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            with gpumon.measure() as m:
                done = True
            self.assertTrue(m.lost)
        self.assertTrue(done)
        self.assertIsNone(m.gpu_s)
        self.assertEqual(len(caught), 1)
        self.assertIn("none.so", str(caught[0].message))
        with self.assertRaisesRegex(gpumon.RequestError, "none.so"):
            gpumon.snapshot()
        with self.assertRaisesRegex(gpumon.RequestError, "none.so"):
            next(gpumon.stream())

    def test_killed_server_loses_about_a_second(self) -> None:
        # Simulated GPUs are read without a server, so this test uses the fake driver.
        del os.environ["GPUMON_SOURCE"]
        os.environ.update(
            fake_nvml_variables(self.folder, GPUS + make_constant_process(os.getpid()))
        )
        with self.start_server() as server:
            self.warm_up()
            with gpumon.measure() as m:
                time.sleep(2)
                server.kill()
                time.sleep(4)
        self.assertEqual(m.peak_memory_bytes, 4 * GIB)
        self.assertIn("server", " ".join(m.lost))
        self.assertAlmostEqual(m.gpu_s, 3, delta=1.5)
        self.assertEqual(helper._current._short_lives, 0)

    def test_restarted_program_measures_remaining_time(self) -> None:
        self.set_scenario(GPUS + make_constant_process(os.getpid()))
        self.warm_up()
        with gpumon.measure() as m:
            time.sleep(0.5)
            os.kill(helper._current._process.pid, signal.SIGKILL)
            time.sleep(0.5)
            # During this call, the package notices that its gpumon program was killed.
            gpumon.snapshot()
            time.sleep(2)
        self.assertRegex(m.lost[0], "^the usage before .* it was ended by SIGKILL")
        self.assertAlmostEqual(m.gpu_s, 1, delta=0.7)
        self.assertGreater(m.to_dict()["duration_s"], 3)


class Readings(SimulatedGpuTest):
    def setUp(self) -> None:
        super().setUp()
        self.set_scenario(GPUS + make_constant_process(os.getpid()))

    def test_snapshot_has_readings_of_gpu(self) -> None:
        now = gpumon.snapshot()
        self.assertTrue(now.is_simulated)
        self.assertLess(
            abs(now.at - datetime.datetime.now().astimezone()), datetime.timedelta(seconds=30)
        )
        gpu = now.gpus[0]
        self.assertEqual(
            (gpu.name, gpu.memory_used_bytes, gpu["memory.used_bytes"]),
            ("NVIDIA H200", 4 * GIB, 4 * GIB),
        )
        self.assertEqual((gpu["fan_percent"], gpu.absence("fan_percent")), (None, "not_supported"))
        self.assertAlmostEqual(gpu.power_watts, 300, delta=10)
        self.assertIsNone(gpu.absence("power.draw_watts"))
        with self.assertRaisesRegex(KeyError, "there is no field 'power.draw_wats'"):
            gpu["power.draw_wats"]
        (process,) = gpu.processes
        self.assertEqual((process.pid, process.memory_bytes), (os.getpid(), 4 * GIB))
        self.assertGreater(now["host.memory.total_bytes"], 0)
        self.assertRegex(str(now), r"(?m)^  0  NVIDIA H200 .* 4.00 GiB / 140 GiB  300 W")
        self.assertIn(f"(PID {os.getpid()}) holds 4.00 GiB", now._repr_html_())
        self.assertRegex(repr(now), "^<Snapshot of 2 GPUs, .*, simulated>$")
        self.assertEqual(set(now.to_dict()), {"inventory", "sample"})

    def test_control_characters_in_names_are_escaped(self) -> None:
        self.set_scenario(
            GPUS + 'name = "NVIDIA \\u001b[2JH200"\n' + make_constant_process(os.getpid())
        )
        self.assertIn(r"NVIDIA \x1b[2JH200", str(gpumon.snapshot()))

    def test_data_frames_have_columns_of_csv(self) -> None:
        now = gpumon.snapshot()
        frame = now.to_pandas()
        self.assertEqual(list(frame["memory_used_bytes"])[0], 4 * GIB)
        columns = subprocess.run(
            [
                gpumon.find_gpumon_bin(), "--csv", "--columns",
                "index,memory_used_bytes,power_draw_watts,pcie_rx_bytes_per_second,"
                "limits_idle_percent",
            ],
            capture_output=True, text=True, check=True,
        ).stdout.splitlines()[0].split(",")  # fmt: skip
        self.assertLessEqual(set(columns), set(frame.columns))
        self.assertEqual(now.to_polars()["name"].to_list(), ["NVIDIA H200"] * 2)

    def test_limits_are_known_between_windows(self) -> None:
        values = []
        for now in gpumon.stream(interval_s=0.2):
            values.append(now.gpus[0]["limits.idle_percent"])
            if values[-4:].count(None) == 0:
                break
        self.assertEqual(len(set(values[-4:])), 1, "a window is longer than the interval")
        self.assertEqual(now.to_pandas()["limits_idle_percent"][0], values[-1])

    def test_stream_has_each_sample_once_until_closed(self) -> None:
        times = []
        for now in gpumon.stream(0.2):
            times.append(now.at.timestamp())
            if len(times) == 6:
                break
        self.assertEqual(times, sorted(set(times)))
        self.assertTrue(0.8 <= times[-1] - times[0] <= 5, times)
        del now
        self.assertEqual(helper._current._receivers, {})
        with gpumon.stream(0.2) as stream:
            next(stream)
        self.assertEqual(list(stream), [])
        for wrong in (0.05, 4000, float("nan")):
            with self.assertRaisesRegex(ValueError, "pass a number of seconds from 0.1 to 3600"):
                gpumon.stream(wrong)

    def test_concurrent_async_streams_have_separate_intervals(self) -> None:
        async def count(interval_s: float) -> int:
            number = 0
            async for _ in gpumon.stream(interval_s):
                number += 1
                if time.monotonic() > until:
                    return number
            return number

        async def main() -> "list[int]":
            return list(await asyncio.gather(count(0.2), count(1)))

        self.warm_up()
        until = time.monotonic() + 4
        often, rarely = asyncio.run(main())
        self.assertGreater(often, 1.8 * rarely)
        self.assertGreaterEqual(rarely, 2)

    def test_unread_stream_does_not_stop_measurement(self) -> None:
        stream = gpumon.stream(0.1)
        next(stream)
        with gpumon.measure() as m:
            time.sleep(6)
        self.assertAlmostEqual(m.gpu_s, 3, delta=0.5)
        self.assertEqual(m.lost, [])
        # The snapshots that were not read yet come first, in order. New snapshots follow.
        times = [next(stream).at.timestamp() for _ in range(70)]
        self.assertEqual(times, sorted(set(times)))
        stream.close()

    def test_program_with_open_stream_ends_cleanly(self) -> None:
        code = (
            "import asyncio, gpumon, logging\n"
            # Debug mode logs slow callbacks, which are frequent on a busy machine.
            "logging.getLogger('asyncio').setLevel(logging.ERROR)\n"
            "stream = gpumon.stream(0.1); next(stream)\n"
            "m = gpumon.measure().start()\n"
            "async def canceled():\n"
            "    with gpumon.stream(30) as slow:\n"
            "        await asyncio.wait_for(slow.__anext__(), 0.5)\n"
            "try: asyncio.run(canceled())\n"
            "except (asyncio.TimeoutError, TimeoutError): print('canceled')\n"
            "asyncio.run(asyncio.wait_for(stream.__anext__(), 10))"
        )
        began = time.monotonic()
        command = [sys.executable, "-X", "dev", "-W", "error", "-c", code]
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertLess(time.monotonic() - began, 15)

    def test_daemon_thread_ends_silently_with_its_program(self) -> None:
        threads = (
            "for _ in gpumon.stream(0.1): pass",
            "while True: [None for _ in gpumon.stream(0.1)]",
            "while True: gpumon.snapshot()",
            "async def main(): [None async for _ in gpumon.stream(0.1)]\n  asyncio.run(main())",
            "while True: gpumon.measure().__enter__().to_dict()",
        )
        for code in threads:
            with self.subTest(code):
                program = (
                    "import asyncio, gpumon, logging, threading, time\n"
                    "logging.getLogger('asyncio').setLevel(logging.ERROR)\n"
                    f"def work():\n  {code}\n"
                    "gpumon.snapshot()\n"
                    "threading.Thread(target=work, daemon=True).start()\n"
                    "time.sleep(0.5)\n"
                    "print('end')\n"
                )
                command = [sys.executable, "-X", "dev", "-W", "error", "-c", program]
                done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_S)
                self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "end\n", ""))

    def test_history_comes_from_server(self) -> None:
        with self.assertRaisesRegex(gpumon.RequestError, "no gpumon server"):
            gpumon.history("power.draw_watts")
        with self.start_server():
            helper._current.close()
            helper._current = helper.Helper()
            self.addCleanup(helper._current.close)
            fields = ["power.draw_watts", "host.memory.used_bytes"]
            until = time.monotonic() + PATIENCE_S
            while time.monotonic() < until and not gpumon.history(fields, since=60).times:
                time.sleep(0.1)
            gpumon.mark("epoch 3")
            while True:
                past = gpumon.history(fields, since=60, points=60)
                marks = [event["text"] for event in past.events if event["what"] == "mark"]
                if len(past.times) > 2 and marks or time.monotonic() > until:
                    break
                time.sleep(0.5)
            self.assertEqual(marks, ["epoch 3"])
            self.assertEqual([gpu.fields for gpu in past.gpus], [["power.draw_watts"]] * 2)
            values = past.gpus[0]["power.draw_watts"].values
            self.assertEqual(len(values), len(past.times))
            self.assertAlmostEqual(
                [value for value in values if value is not None][-1], 300, delta=10
            )
            frame = past.to_pandas()
            self.assertEqual(len(frame), 2 * len(past.times))
            self.assertEqual(
                list(frame.columns),
                ["time", "gpu", "name", "power_draw_watts", "host_memory_used_bytes"],
            )
            self.assertEqual(past.to_polars().shape, frame.shape)
            self.assertEqual(len(past.plot().axes), 2)
            now = datetime.datetime.now()
            for since in (datetime.timedelta(seconds=60), now - datetime.timedelta(seconds=60), 60):
                self.assertTrue(gpumon.history("power.draw_watts", since).times)
            only_host = gpumon.history("host.memory.used_bytes", 60).to_pandas()
            self.assertEqual(list(only_host.columns), ["time", "host_memory_used_bytes"])
            with self.assertRaisesRegex(gpumon.RequestError, "power.draw_wats"):
                gpumon.history("power.draw_wats")
            with self.assertRaisesRegex(ValueError, "`since` must be earlier than `until`"):
                gpumon.history("power.draw_watts", since=60, until=120)
            with self.assertRaisesRegex(ValueError, "no field"):
                gpumon.history([])


if __name__ == "__main__":
    unittest.main()
