"""`%load_ext gpumon` in a real kernel."""

import re
import statistics
import subprocess
import sys
import time
import unittest
from xml.etree import ElementTree

import nbformat
from kernel import Kernel
from nbclient import NotebookClient
from simulated import GPUS, SimulatedGpuTest, make_constant_process
from stand_in import PRELUDE, StandInTest

LINE = r"^[\d.]+ m?s, GPU 9.80 s, peak 61.0 GiB, 6.10 kJ, host-bound 62 %$"
#: The text of a cell's report.
REPORT = (
    f"{LINE[:-1]}\nLimited by: host-bound 62 %, tensor-bound 30 %\nA process uses 100 % of a core "
    f"while the GPU waits. Prepare data in worker processes.$"
)


class Magics(StandInTest):
    """Magics with the stand-in, whose numbers are always the same."""

    def setUp(self) -> None:
        super().setUp()
        self.kernel = Kernel(**self.variables)
        self.addCleanup(self.kernel.close)
        self.assertEqual(self.kernel.run_cell(PRELUDE + "%load_ext gpumon").status, "ok")

    def assert_line(self, shown: dict, line: str = LINE) -> None:
        self.kernel.process_messages(lambda: "…" not in shown["text/plain"])
        self.assertRegex(shown["text/plain"], line)
        self.assertIn(shown["text/plain"], shown["text/html"])

    def test_gpu_on_and_off_toggle_cost_lines(self) -> None:
        self.assertEqual(self.kernel.run_cell("%gpu on").displayed, [])
        ran = self.kernel.run_cell("print('mine')\n6 * 7")
        self.assertEqual((ran.printed, ran.result), ("mine\n", "42"))
        (shown,) = ran.displayed
        self.assert_line(shown)
        failed = self.kernel.run_cell("1 / 0")
        self.assertEqual(failed.error, "ZeroDivisionError: division by zero")
        self.assert_line(failed.displayed[0])
        self.assertEqual(self.kernel.run_cell("%gpu off").displayed, [])
        self.assertEqual(self.kernel.run_cell("1").displayed, [])

    def test_missed_cost_update_is_shown_after_next_cell(self) -> None:
        self.kernel.run_cell("%gpu on")
        (shown,) = self.kernel.run_cell("1").displayed
        self.assert_line(shown)
        shown["text/plain"] = "1 ms, GPU …"
        self.kernel.run_cell("2")
        self.assertRegex(shown["text/plain"], LINE)

    def test_interrupted_cell_has_cost_line(self) -> None:
        self.kernel.run_cell("%gpu on")
        ran = self.kernel.run_cell(
            "import time\nprint('runs', flush=True)\ntime.sleep(50)",
            during=self.kernel.manager.interrupt_kernel,
        )
        self.assertEqual(ran.error, "KeyboardInterrupt: ")
        self.assert_line(ran.displayed[0])
        # The interrupt must not have ended the gpumon program.
        self.assertEqual(self.kernel.run_cell("helper.current_helper()._short_lives").result, "0")

    def test_hooks_take_at_most_two_milliseconds(self) -> None:
        self.kernel.run_cell("%gpu on")
        for _ in range(20):
            self.kernel.run_cell("1")
        code = (
            "shell = get_ipython()\nimport types\ntimes = []\n"
            "def timed(event):\n"
            "  for at, hook in enumerate(shell.events.callbacks[event]):\n"
            "    if type(getattr(hook, '__self__', None)).__name__ == 'CellLines':\n"
            "      def wrapped(*given, hook=hook):\n"
            "        import time; began = time.perf_counter(), time.thread_time(); hook(*given)\n"
            "        times.append((time.perf_counter() - began[0], time.thread_time() - "
            "began[1]))\n"
            "      shell.events.callbacks[event][at] = wrapped\n"
            "timed('pre_run_cell'); timed('post_run_cell')"
        )
        self.kernel.run_cell(code)
        for _ in range(30):
            self.kernel.run_cell("1")
        elapsed, computed = (
            [1000 * seconds for seconds in of]
            for of in zip(*eval(self.kernel.run_cell("times").result))
        )
        self.assertGreater(len(elapsed), 50)
        # The limit applies to both hooks of a cell together. It must be met by the median computing
        # time, and by the elapsed time in the fastest quarter of the cells, which a busy machine
        # did not delay.
        self.assertLess(2 * statistics.median(computed), 2)
        self.assertLess(2 * statistics.quantiles(elapsed, n=4)[0], 2)

    def test_cell_magic_shows_cost_with_chart(self) -> None:
        ran = self.kernel.run_cell("%%gpu train\nx = 6\nprint('mine')\nx * 7")
        self.assertEqual((ran.printed, ran.result), ("mine\n", "42"))
        (shown,) = ran.displayed
        self.assertRegex(shown["text/plain"], REPORT)
        self.assertIn("<b>train</b>", shown["text/html"])
        self.assertIn("Limited by: host-bound 62 %, tensor-bound 30 %", shown["text/html"])
        self.assertEqual(self.kernel.run_cell("x").result, "6")
        failed = self.kernel.run_cell("%%gpu\n1 / 0")
        self.assertEqual(failed.error, "ZeroDivisionError: division by zero")
        self.assertRegex(failed.displayed[0]["text/plain"], REPORT)

    def test_cell_magic_replaces_line_of_cell(self) -> None:
        self.kernel.run_cell("%gpu on")
        self.assertEqual(len(self.kernel.run_cell("%%gpu\n1").displayed), 1)
        self.assertEqual(len(self.kernel.run_cell("1").displayed), 1)

    def test_cell_with_captured_output_has_cost_line(self) -> None:
        self.kernel.run_cell("%gpu on")
        ran = self.kernel.run_cell("%%capture\nprint('mine')")
        self.assertEqual(ran.printed, "")
        self.assert_line(ran.displayed[0])

    def test_trailing_semicolon_hides_result_of_cell(self) -> None:
        for code, result in (
            ("1 + 1;", ""),
            ("('ä', 1);  # why", ""),
            ("1 + 1  # why;", "2"),
            ("!true\n2;", ""),
        ):
            with self.subTest(code):
                self.assertEqual(self.kernel.run_cell(f"%%gpu\n{code}").result, result)

    def test_traceback_contains_only_code_of_cell(self) -> None:
        self.kernel.run_cell("%colors NoColor")
        traceback = self.kernel.run_cell("%%gpu\n1 / 0").traceback
        self.assertIn("1 / 0", traceback)
        self.assertNotIn("magics.py", traceback)

    def test_reason_for_missing_measurement_is_shown_once(self) -> None:
        self.kernel.run_cell("helper._current._disable_with_warning('no driver')\n%gpu on")
        first, second = (self.kernel.run_cell("1").displayed[0] for _ in range(2))
        self.assert_line(first, r"^[\d.]+ m?s, GPU not measured: no driver$")
        self.assert_line(second, r"^[\d.]+ m?s, GPU not measured$")
        (cell,) = self.kernel.run_cell("%%gpu\n1").displayed
        self.assertEqual(cell["text/html"].count("no driver"), 1)

    def test_unknown_argument_is_refused(self) -> None:
        self.assertRegex(
            self.kernel.run_cell("%gpu onn").printed,
            "^UsageError: %gpu has no argument 'onn': %gpu",
        )

    def test_missing_gpus_are_reported_with_reason(self) -> None:
        (shown,) = self.kernel.run_cell("%gpu").displayed
        self.assertEqual(
            shown["text/plain"], "gpumon: the stand-in has no such measurement; start it first"
        )

    def test_reloading_and_unloading_extension_remove_cost_lines(self) -> None:
        self.kernel.run_cell("%gpu on")
        self.kernel.run_cell("%reload_ext gpumon")
        self.assertEqual(
            len(self.kernel.run_cell("1").displayed), 0, "reloading must turn the lines off"
        )
        self.kernel.run_cell("%gpu on")
        self.assertEqual(len(self.kernel.run_cell("1").displayed), 1)
        self.kernel.run_cell("%unload_ext gpumon")
        self.assertEqual(self.kernel.run_cell("1").displayed, [])

    def test_restarted_kernel_shows_no_cost_lines(self) -> None:
        self.kernel.run_cell("%gpu on")
        self.kernel.run_cell("1")
        self.kernel.manager.restart_kernel(now=False)
        self.kernel.client.wait_for_ready(timeout=60)
        self.assertEqual(self.kernel.run_cell("1").displayed, [])
        self.kernel.run_cell(PRELUDE + "%load_ext gpumon")
        self.kernel.run_cell("%gpu on")
        self.assert_line(self.kernel.run_cell("1").displayed[0])

    def test_program_killed_between_cells_is_replaced(self) -> None:
        self.kernel.run_cell("%gpu on")
        self.assert_line(self.kernel.run_cell("1").displayed[0])
        self.kernel.run_cell(
            "import os, signal; os.kill(helper.current_helper()._process.pid, signal.SIGKILL)"
        )
        time.sleep(0.3)
        self.assert_line(self.kernel.run_cell("1").displayed[0])


class Headless(StandInTest):
    def test_nbclient_gets_final_costs_except_for_last_cell(self) -> None:
        code = [
            PRELUDE + "%load_ext gpumon\n%gpu on",
            "1",
            "2",
            "import time; time.sleep(2)",
            "%%gpu\n3",
            "4",
        ]
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in code]
        )
        NotebookClient(notebook, kernel_name="python3").execute()
        lines = [
            [
                output["data"]["text/plain"]
                for output in cell["outputs"]
                if output["output_type"] == "display_data"
            ]
            for cell in notebook["cells"]
        ]
        self.assertEqual([len(shown) for shown in lines], [0, 1, 1, 1, 1, 1])
        for shown in lines[1:4]:
            self.assertRegex(shown[0], LINE.replace("ms", "m?s"))
        self.assertRegex(lines[4][0], REPORT)
        self.assertRegex(lines[5][0], LINE + r"|^[\d.]+ m?s, GPU …$")


class Numbers(SimulatedGpuTest):
    """Numbers with the real program and simulated GPUs."""

    def setUp(self) -> None:
        super().setUp()
        self.kernel = Kernel(**self.variables)
        self.addCleanup(self.kernel.close)
        pid = int(self.kernel.run_cell("import os; os.getpid()").result)
        self.set_scenario(GPUS + make_constant_process(pid))
        self.assertEqual(self.kernel.run_cell("%load_ext gpumon").status, "ok")

    def wait_for_final_line(self, shown: dict) -> str:
        self.kernel.process_messages(lambda: "…" not in shown["text/plain"])
        return shown["text/plain"]

    def test_magic_shows_current_gpus(self) -> None:
        (shown,) = self.kernel.run_cell("%gpu").displayed
        self.assertRegex(shown["text/plain"], r"(?m)^  0  NVIDIA H200 .* 4.00 GiB / 140 GiB  300 W")
        self.assertIn("<table", shown["text/html"])

    def test_cell_and_script_have_same_cost(self) -> None:
        self.kernel.run_cell("%gpu")
        (cell,) = self.kernel.run_cell("%%gpu\nimport time; time.sleep(2)").displayed
        self.kernel.run_cell("%gpu on")
        (below,) = self.kernel.run_cell("time.sleep(2)").displayed
        self.kernel.run_cell("import gpumon\nwith gpumon.measure() as m:\n    time.sleep(2)")
        within = self.kernel.run_cell("print(m)").printed
        work = (
            "import os, time; time.sleep(3); import gpumon; gpumon.snapshot()\nwith "
            "gpumon.measure() as m: time.sleep(2)\nprint(m)"
        )
        with subprocess.Popen(
            [sys.executable, "-c", work], stdout=subprocess.PIPE, text=True
        ) as script:
            self.set_scenario(GPUS + make_constant_process(script.pid))
            alone = script.communicate()[0]
        for line in (
            cell["text/plain"].splitlines()[0],
            self.wait_for_final_line(below),
            within.splitlines()[0],
            alone.strip(),
        ):
            duration_s, gpu, memory, joules = re.fullmatch(
                r"([\d.]+) s, GPU ([\d.]+ m?s), peak (.* GiB), ([\d.]+) J, [a-z -]+ \d+ %", line
            ).groups()
            gpu_s = float(gpu.split()[0]) / (1000 if "ms" in gpu else 1)
            self.assertAlmostEqual(float(duration_s), 2, delta=0.5)
            self.assertAlmostEqual(gpu_s, float(duration_s) / 2, delta=0.2)
            self.assertAlmostEqual(float(joules), 300 * float(duration_s), delta=60)
            self.assertEqual(memory, "4.00 GiB")

    def test_chart_shows_utilization_and_memory(self) -> None:
        self.kernel.run_cell("%gpu")
        (shown,) = self.kernel.run_cell("%%gpu\nimport time; time.sleep(4)").displayed
        (svg,) = re.findall("<svg.*?</svg>", shown["text/html"])
        chart = ElementTree.fromstring(svg)
        paths = [path.get("d") for path in chart.iter("{http://www.w3.org/2000/svg}path")]
        # The chart has the utilization of the used GPU at half of the height, and its memory at the
        # maximum.
        self.assertEqual(len(paths), 2)
        for path, y in zip(paths, (14 + 56 / 2, 14 + 56 + 20)):
            heights = {float(point.split()[1]) for point in re.split("[ML]", path)[1:]}
            self.assertGreater(path.count("L"), 3)
            self.assertEqual({round(height) for height in heights}, {round(y)})


if __name__ == "__main__":
    unittest.main()
