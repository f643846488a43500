"""Copies and pickles of results: they have the numbers, but no connection."""

import copy
import gc
import os
import pickle
import unittest
import warnings

import cloudpickle
import gpumon
from simulated import GPUS, SimulatedGpuTest
from stand_in import StandInTest

PROTOCOLS = range(pickle.HIGHEST_PROTOCOL + 1)


def make_copies(original: object) -> "list[object]":
    """Return copies made by pickle with each protocol, by cloudpickle and by copy."""
    pickled = [pickle.loads(pickle.dumps(original, protocol)) for protocol in PROTOCOLS]
    return [
        *pickled,
        pickle.loads(cloudpickle.dumps(original)),
        copy.copy(original),
        copy.deepcopy(original),
    ]


@gpumon.measure
def step() -> int:
    return 42


class Trainer:
    @gpumon.measure("fit")
    def fit(self) -> int:
        return 43


class Measurements(StandInTest):
    def test_copy_has_measured_values_and_no_connection(self) -> None:
        with gpumon.measure("train") as m:
            pass
        for one in make_copies(m):
            self.assertEqual(one.to_dict(), m.to_dict())
            self.assertEqual(
                (one.name, one.duration_s, one.started, one.gpu_s, one.lost),
                ("train", m.duration_s, m.started, 9.8, []),
            )
            self.assertEqual(
                (one.stored(), one.gpus, str(one), repr(one)), (m.stored(), m.gpus, str(m), repr(m))
            )
            self.assertEqual(list(one.to_pandas()["gpu_s"]), [9.8])
            self.assertIsNone(one._helper)

    def test_pickling_waits_for_the_measured_values(self) -> None:
        with gpumon.measure() as m:
            pass
        self.assertEqual(pickle.loads(pickle.dumps(m)).gpu_s, 9.8)
        self.assertEqual(sum("cost" in line for line in self.wait_for_lines()), 1)

    def test_copy_of_running_measurement_has_values_so_far(self) -> None:
        with gpumon.measure("train") as m:
            so_far = make_copies(m)
            self.assertEqual(m.lost, [])
        for one in so_far:
            self.assertEqual(one.gpu_s, 9.8)
            self.assertRegex(
                one.lost[-1],
                r"^the usage after [\d:]+, when this copy was made: .* still running$",
            )
            self.assertLessEqual(one.duration_s, m.duration_s)
            self.assertAlmostEqual(one.duration_s, one.to_dict()["duration_s"])
            one.stop()
        self.assertEqual((m.gpu_s, m.lost), (9.8, []))

    def test_copy_of_unstarted_measurement_can_start(self) -> None:
        for one in make_copies(gpumon.measure("later", pid=os.getpid())):
            self.assertEqual(repr(one), "<Measurement 'later', not started>")
            with one:
                pass
            self.assertEqual((one.gpu_s, one.pid), (9.8, os.getpid()))

    def test_copy_can_measure_again(self) -> None:
        with gpumon.measure("train") as m:
            pass
        for one in make_copies(m):
            with one:
                self.assertEqual(one.lost, [])
            self.assertEqual(one.gpu_s, 9.8)
            self.assertGreater(one.started, m.started)

    def test_user_attributes_are_copied(self) -> None:
        with gpumon.measure() as m:
            m.loss = 0.5
        for one in make_copies(m):
            self.assertEqual(one.loss, 0.5)

    def test_failed_unpickling_prints_nothing(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            gpumon.Measurement.__new__(gpumon.Measurement)
            gc.collect()

    def test_deep_copy_is_independent(self) -> None:
        with gpumon.measure() as m:
            pass
        one = copy.deepcopy(m)
        one.to_dict()["gpus"].clear()
        self.assertEqual(len(m.gpus), 1)


class Functions(StandInTest):
    def tearDown(self) -> None:
        step.measurements.clear()
        Trainer.fit.measurements.clear()
        super().tearDown()

    def test_importable_function_is_pickled_by_name(self) -> None:
        step()
        for protocol in PROTOCOLS:
            self.assertIs(pickle.loads(pickle.dumps(step, protocol)), step)
        self.assertEqual(pickle.loads(pickle.dumps(Trainer().fit))(), 43)
        self.assertIs(copy.deepcopy(step), step)

    def test_local_function_is_pickled_with_measurements(self) -> None:
        @gpumon.measure("square")
        def square(x: int) -> int:
            return x * x

        self.assertEqual(square(2), 4)
        sent = pickle.loads(cloudpickle.dumps(square))
        self.assertEqual(sent(3), 9)
        self.assertEqual([m.gpu_s for m in sent.measurements], [9.8, 9.8])
        self.assertEqual(len(square.measurements), 1)
        # Like the original, the copy keeps only the last 100 measurements.
        for _ in range(105):
            sent(1)
        self.assertEqual(len(sent.measurements), 100)

    def test_running_function_can_pickle_itself(self) -> None:
        @gpumon.measure
        def pickle_and_recurse(depth: int) -> int:
            return (
                pickle.loads(cloudpickle.dumps(pickle_and_recurse))(depth - 1) + 1 if depth else 0
            )

        self.assertEqual(pickle_and_recurse(3), 3)

    def test_process_pools_return_measurements(self) -> None:
        for method in ("fork", "spawn", "forkserver"):
            with self.subTest(method):
                code = (
                    "import multiprocessing\n"
                    "from concurrent.futures import ProcessPoolExecutor\n"
                    "@gpumon.measure('step')\n"
                    "def step(x):\n"
                    "  return x\n"
                    "def work(x):\n"
                    "  with gpumon.measure('work') as m: step(x)\n"
                    "  return m, list(step.measurements)\n"
                    "if __name__ == '__main__':\n"
                    f"  context = multiprocessing.get_context({method!r})\n"
                    "  with gpumon.measure() as outer, ProcessPoolExecutor(1, context) as pool:\n"
                    "    print(*pool.map(step, range(3)))\n"
                    "    for m, steps in pool.map(work, range(2)):\n"
                    "      print(m.name, m.gpu_s, [(one.name, one.gpu_s) for one in steps][-1:])\n"
                    "    print(pool.submit(str, outer).result().split(',')[1])\n"
                )
                expected = "0 1 2\n" + "work 9.8 [('step', 9.8)]\n" * 2 + " GPU 9.80 s\n"
                self.assertEqual(self.run_script(code), expected)


class Readings(SimulatedGpuTest):
    def test_readings_can_be_copied(self) -> None:
        self.set_scenario(GPUS)
        now = gpumon.snapshot()
        for original in (now, now.gpus[0]):
            for one in make_copies(original):
                self.assertEqual(one.to_dict(), original.to_dict())
                self.assertEqual(repr(one), repr(original))

    def test_history_can_be_copied(self) -> None:
        series = {"values": [1.0, None], "min": [0.5, None], "max": [2.0, None]}
        gpu = {
            "index": 0,
            "uuid": "GPU-0",
            "name": "NVIDIA H200",
            "metrics": {"power.draw_watts": series},
        }
        past = gpumon.History({"times_ms": [0, 1000], "resolution_ms": 1000, "gpus": [gpu]})
        for one in make_copies(past):
            self.assertEqual(one.gpus[0]["power.draw_watts"].values, [1.0, None])
            self.assertEqual(one.to_dict(), past.to_dict())

    def test_stream_refuses_to_be_copied(self) -> None:
        self.set_scenario(GPUS)
        with gpumon.stream() as stream:
            for copied in (copy.copy, copy.deepcopy, pickle.dumps, cloudpickle.dumps):
                with self.assertRaisesRegex(
                    TypeError, r"a stream cannot be copied or pickled: call gpumon.stream\(\) in"
                ):
                    copied(stream)

    def test_errors_can_be_copied(self) -> None:
        for kind in (
            gpumon.GpumonError,
            gpumon.ProgramError,
            gpumon.RequestError,
            gpumon.MeasurementError,
            gpumon.GpumonNotFound,
        ):
            for one in make_copies(kind("why; what to do")):
                self.assertEqual((type(one), str(one)), (kind, "why; what to do"))


if __name__ == "__main__":
    unittest.main()
