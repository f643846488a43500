"""`gpumon.measure`: the lines that it sends to the program, and how it uses the answers."""

import asyncio
import contextlib
import gc
import os
import sys
import time
import unittest
from unittest import mock

import gpumon
import gpumon._helper as helper
from stand_in import StandInTest


def values_by_key(lines: "list[dict]", key: str) -> list:
    return [line[key] for line in lines if key in line]


class Numbers(StandInTest):
    def test_measurement_has_values_reported_by_program(self) -> None:
        with gpumon.measure("train") as m:
            time.sleep(0.02)
        self.assertEqual(
            (m.gpu_s, m.peak_memory_bytes, m.memory_change_bytes), (9.8, 61 * 1024**3, 1024**3)
        )
        self.assertEqual(
            (m.energy_joules, m.energy_joules_range, m.shared), (6100.0, (6100.0, 6100.0), False)
        )
        self.assertEqual(m.lost, [])
        (gpu,) = m.gpus
        self.assertEqual(
            (gpu.name, gpu.sm_percent, gpu.tensor_percent),
            ("NVIDIA H200", gpumon.Spread(81.0, 99.0), None),
        )
        self.assertEqual(gpu.conditions[0].text, "Power-capped at 700 W")
        cost = m.to_dict()
        self.assertAlmostEqual(cost["duration_s"], m.duration_s, delta=0.001)
        self.assertEqual((cost["version"], cost["name"], cost["gpu_s"]), (1, "train", 9.8))
        self.assertEqual(m.stored()["gpus"], ["NVIDIA H200"])
        self.assertRegex(
            str(m), r"^[\d.]+ m?s, GPU 9.80 s, peak 61.0 GiB, 6.10 kJ, host-bound 62 %$"
        )
        self.assertRegex(repr(m), r"^<Measurement 'train': [\d.]+ m?s, GPU 9.80 s")
        self.assertIn("<td", m._repr_html_())

    def test_measurement_has_causes_that_limited_gpus(self) -> None:
        with gpumon.measure() as m:
            pass
        limits = m.limits
        self.assertEqual(limits.shares[0], ("host", 61.8))
        self.assertEqual(limits.evidence, {"cpu_percent": 100.0})
        self.assertEqual(m.gpus[0].limits, limits)
        self.assertEqual(len({m.gpus[0], m.gpus[0]}), 1, "it can be in a set")
        html = m._repr_html_()
        for text in (
            "Limited by: host-bound 62 %, tensor-bound 30 %",
            "A process uses 100 % of a core while the GPU waits. Prepare data in worker processes.",
            ">host-bound 62 %</td>",
        ):
            self.assertIn(text, html)
        self.assertEqual(m.to_pandas()["limits_host_percent"][0], 61.8)
        self.assertTrue(m.to_pandas()["limits_idle_percent"].isna()[0])

    def test_begin_and_end_requests_have_times(self) -> None:
        before = time.time() * 1000
        with gpumon.measure('an "epoch"\n') as m:
            pass
        m.to_dict()
        gpumon.mark("later")
        begin, end, ask, forget, _ = self.wait_for_lines(5)
        self.assertEqual(begin["name"], 'an "epoch"\n')
        self.assertEqual(begin["pid"], os.getpid())
        self.assertTrue(before - 1 <= begin["at_ms"] <= end["at_ms"] <= time.time() * 1000)
        self.assertEqual([ask["cost"], end["end"], forget["forget"]], [begin["begin"]] * 3)

    def test_running_measurement_has_values_so_far(self) -> None:
        with gpumon.measure() as m:
            self.assertEqual(m.gpu_s, 9.8)
            first = m.duration_s
            self.assertIn("so far", repr(m))
            self.assertGreater(m.duration_s, first)
        self.assertEqual(m.gpu_s, 9.8)
        # There were two requests during the measurement and one after its end. The final numbers
        # are kept, so there are no further requests.
        self.assertEqual(len(values_by_key(self.wait_for_lines(), "cost")), 3)
        self.assertEqual(str(m), str(m))
        self.assertEqual(len(values_by_key(self.wait_for_lines(), "cost")), 3)

    def test_measurement_is_converted_to_data_frames_and_plots(self) -> None:
        with gpumon.measure("train") as m:
            pass
        frame = m.to_pandas()
        self.assertEqual(list(frame["peak_memory_bytes"]), [61 * 1024**3])
        self.assertEqual(frame["sm_percent_peak"][0], 99.0)
        self.assertEqual(m.to_polars().columns, list(frame.columns))
        axes = m.plot().axes
        self.assertEqual(
            [round(axis.patches[0].get_width(), 3) for axis in axes], [9.8, 61.0, 6100.0]
        )

    def test_missing_library_is_named_with_install_command(self) -> None:
        with gpumon.measure() as m:
            pass
        for library, call in (
            ("pandas", m.to_pandas),
            ("polars", m.to_polars),
            ("matplotlib", m.plot),
        ):
            hidden = {
                name: None for name in [library, *sys.modules] if name.partition(".")[0] == library
            }
            with mock.patch.dict(sys.modules, hidden):
                with self.assertRaisesRegex(
                    ImportError,
                    f"needs {library}, which is not installed: run `pip install {library}`",
                ):
                    call()


class Blocks(StandInTest):
    def test_blocks_can_be_nested_and_reused(self) -> None:
        with gpumon.measure("outer") as outer:
            with gpumon.measure("inner") as inner:
                pass
            with inner:
                time.sleep(0.05)
        self.assertGreaterEqual(inner.duration_s, 0.05)
        self.assertGreaterEqual(outer.duration_s, inner.duration_s)
        self.assertEqual((outer.gpu_s, inner.gpu_s), (9.8, 9.8))
        lines = self.wait_for_lines()
        self.assertEqual(values_by_key(lines, "name"), ["outer", "inner", "inner"])
        self.assertEqual(len(set(values_by_key(lines, "begin"))), 3)

    def test_exception_is_raised_and_measured(self) -> None:
        with self.assertRaisesRegex(ValueError, "mine"):
            with gpumon.measure() as m:
                raise ValueError("mine")
        self.assertEqual(m.gpu_s, 9.8)

    def test_async_block_is_measured(self) -> None:
        async def main() -> gpumon.Measurement:
            async with gpumon.measure("task") as m:
                await asyncio.sleep(0.02)
            return m

        self.assertGreaterEqual(asyncio.run(main()).duration_s, 0.02)

    def test_misuse_of_measurement_raises_error_with_advice(self) -> None:
        m = gpumon.measure("train")
        with self.assertRaisesRegex(
            gpumon.MeasurementError, "'train' has not started: use it in a `with`"
        ):
            m.gpu_s
        self.assertEqual(repr(m), "<Measurement 'train', not started>")
        with (
            m,
            self.assertRaisesRegex(
                gpumon.MeasurementError, r"is already running: call gpumon.measure\(\) again"
            ),
        ):
            m.start()
        m.stop()
        m.to_dict()
        self.assertEqual(len(values_by_key(self.wait_for_lines(), "end")), 1)
        for wrong, error in (
            ({"name": 3}, TypeError),
            ({"pid": "1"}, TypeError),
            ({"pid": -1}, ValueError),
        ):
            with self.subTest(wrong), self.assertRaises(error):
                gpumon.measure(**wrong)
        with self.assertRaisesRegex(
            TypeError, r"the text of a mark must be a string, not 3: convert it with str\(...\)"
        ):
            gpumon.mark(3)

    def test_name_with_invalid_unicode_is_accepted(self) -> None:
        with gpumon.measure("caf\udce9") as m:
            pass
        self.assertEqual(m.to_dict()["name"], "caf?")

    def test_unreachable_measurements_are_forgotten(self) -> None:
        with gpumon.measure() as kept:
            for _ in range(3):
                with gpumon.measure():
                    pass
        gc.collect()
        kept.to_dict()
        lines = self.wait_for_lines()
        self.assertEqual(sorted(values_by_key(lines, "forget")), values_by_key(lines, "begin")[1:])
        self.assertEqual(helper._current._runs, {})


class Decorators(StandInTest):
    def test_each_call_is_measured_separately(self) -> None:
        @gpumon.measure("step")
        def step(number: int) -> int:
            """Steps."""
            return number if number == 0 else step(number - 1)

        @gpumon.measure
        def plain() -> None:
            raise KeyError("mine")

        self.assertEqual(step(2), 0)
        self.assertEqual((step.__name__, step.__doc__), ("step", "Steps."))
        self.assertEqual([m.gpu_s for m in step.measurements], [9.8] * 3)
        with self.assertRaises(KeyError):
            plain()
        self.assertRegex(plain.measurements[-1].name, r"<locals>\.plain$")
        self.assertEqual(plain.measurements[-1].gpu_s, 9.8)

    def test_only_last_100_calls_are_kept(self) -> None:
        step = gpumon.measure(lambda: None)
        for _ in range(105):
            step()
        self.assertEqual(len(step.measurements), 100)

    def test_coroutines_and_generators_are_measured_completely(self) -> None:
        @gpumon.measure
        async def coroutine() -> int:
            await asyncio.sleep(0.02)
            return 1

        @gpumon.measure
        def generator():
            got = yield 1
            time.sleep(0.02)
            yield got
            return 3

        @gpumon.measure
        async def async_generator():
            yield 1
            await asyncio.sleep(0.02)
            yield 2

        async def collect_values() -> list:
            return [value async for value in async_generator()]

        self.assertEqual(asyncio.run(coroutine()), 1)
        values = generator()
        self.assertEqual((next(values), values.send(2)), (1, 2))
        with self.assertRaises(StopIteration) as ended:
            next(values)
        self.assertEqual(ended.exception.value, 3)
        self.assertEqual(asyncio.run(collect_values()), [1, 2])
        for function in (coroutine, generator, async_generator):
            (m,) = function.measurements
            self.assertGreaterEqual(m.duration_s, 0.02, function)
            self.assertEqual(m.gpu_s, 9.8)

    def test_closed_generator_ends_its_measurement(self) -> None:
        @gpumon.measure
        def yield_numbers():
            yield from range(9)

        with contextlib.closing(yield_numbers()) as values:
            next(values)
        (m,) = yield_numbers.measurements
        duration_s = m.duration_s
        time.sleep(0.01)
        self.assertEqual(m.duration_s, duration_s)


class Marks(StandInTest):
    def test_mark_has_text_and_time(self) -> None:
        gpumon.mark("epoch 3")
        with gpumon.measure() as m:
            m.to_dict()
        (mark,) = [line for line in self.wait_for_lines() if "mark" in line]
        self.assertEqual(mark["mark"], "epoch 3")
        self.assertAlmostEqual(mark["at_ms"], time.time() * 1000, delta=10_000)


if __name__ == "__main__":
    unittest.main()
