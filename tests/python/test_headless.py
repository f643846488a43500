"""Costs of cells in notebooks that run with papermill, nbconvert and nbclient."""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import types
import unittest
import warnings
from pathlib import Path

import nbformat
from fake_gpu import HELD_BYTES, HOLD, fake_gpu_variables
from nbclient import NotebookClient
from nbformat import v4
from stand_in import StandInTest

import gpumon
from gpumon._cells import CellCosts, cell_costs, cell_run

KEYS = {
    "version", "duration_s", "gpu_s", "peak_memory_bytes", "memory_change_bytes", "energy_joules",
    "shared", "gpus", "run",
}  # fmt: skip
OLD = {"gpumon": {"version": 1, "duration_s": 7}}
BIN = Path(sys.executable).parent
#: Test cases: a cell, a stored cost, and whether the cost belongs to the cell's last run. The tests
#: in Rust and TypeScript use the same file.
RUNS = json.loads((Path(__file__).resolve().parents[1] / "stored-cost-runs.json").read_text())

#: The commands that run a notebook and write the result to another file in the same folder.
RUNNERS = {
    "papermill": [
        BIN / "papermill", "--engine", "gpumon", "--no-progress-bar", "in.ipynb", "out.ipynb",
    ],
    "nbconvert": [
        BIN / "jupyter", "nbconvert", "--execute", "--to", "notebook", "--output", "out.ipynb",
        "--Exporter.preprocessors=gpumon.nbconvert.CostPreprocessor", "in.ipynb",
    ],
    "nbclient": [sys.executable, "-m", "gpumon.nbclient", "--output", "out.ipynb", "in.ipynb"],
}  # fmt: skip


def write_notebook(folder: Path, *cells: nbformat.NotebookNode) -> None:
    """Write `in.ipynb` with a text cell and then these cells."""
    kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3", "language": "python"}}
    notebook = v4.new_notebook(
        cells=[v4.new_markdown_cell("# A notebook"), *cells], metadata=kernel
    )
    nbformat.write(notebook, folder / "in.ipynb")


def run_notebook(folder: Path, runner: str, **variables: str) -> subprocess.CompletedProcess:
    """Run the notebook of this folder."""
    env = os.environ | {"GPUMON_CONFIG": "none"} | variables
    return subprocess.run(RUNNERS[runner], cwd=folder, env=env, capture_output=True, text=True)


def stored_costs(folder: Path) -> "list[dict | None]":
    """Return the stored cost of each cell in the output notebook, which must be valid."""
    notebook = nbformat.read(folder / "out.ipynb", nbformat.NO_CONVERT)
    nbformat.validate(notebook)
    return [cell.metadata.get("gpumon") for cell in notebook.cells]


class Runners(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def test_all_runners_store_cost_of_gpu_cells(self) -> None:
        variables = fake_gpu_variables(self.folder)
        # This wait ensures that a sample is taken between two cells. Otherwise, memory that a cell
        # allocates would also count for the cell before it.
        wait = "import time; time.sleep(1.2)"
        free, allocate = (
            v4.new_code_cell("x = 1", metadata=OLD),
            v4.new_code_cell(f"{wait}\n{HOLD}\n{wait}"),
        )
        hold, empty = (
            v4.new_code_cell("time.sleep(0.4)", metadata=OLD),
            v4.new_code_cell("", metadata=OLD),
        )
        skipped = v4.new_code_cell("never", metadata={"tags": ["skip-execution"]})
        # A sample must also be taken between the third cell and the end of the kernel.
        write_notebook(self.folder, free, allocate, hold, empty, skipped, v4.new_code_cell(wait))
        for runner in RUNNERS:
            with self.subTest(runner):
                done = run_notebook(self.folder, runner, **variables)
                self.assertEqual(done.returncode, 0, done.stderr)
                text, first, second, third, *rest, last = stored_costs(self.folder)
                self.assertEqual([text, first, *rest], [None] * 4)
                self.assertEqual([set(second), set(third), set(last)], [KEYS, KEYS, KEYS])
                held = (HELD_BYTES, HELD_BYTES, ["NVIDIA H200"], 1)
                told = [
                    second[key]
                    for key in ("peak_memory_bytes", "memory_change_bytes", "gpus", "version")
                ]
                self.assertEqual(tuple(told), held)
                self.assertEqual(
                    (third["peak_memory_bytes"], third["memory_change_bytes"]), (HELD_BYTES, 0)
                )
                self.assertTrue(
                    2.4 <= second["duration_s"] < 30 and 0.4 <= third["duration_s"] < 30
                )
                self.assertGreater(second["energy_joules"], third["energy_joules"])

    def test_report_reads_stored_costs(self) -> None:
        write_notebook(self.folder, v4.new_code_cell(HOLD + "import time; time.sleep(1.2)"))
        self.assertEqual(
            run_notebook(self.folder, "nbclient", **fake_gpu_variables(self.folder)).returncode, 0
        )
        command = [
            gpumon.find_gpumon_bin(),
            "--config",
            "none",
            "notebook",
            "report",
            self.folder / "out.ipynb",
        ]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.assertIn("1 of 1 code cells used a GPU: NVIDIA H200", report)
        self.assertRegex(report, r" 2 +\[1\] import ctypes, os +\S+ s +0 s +256 MiB +\S+ k?J\n")
        self.assertNotIn("earlier run", report)

    def test_unmeasured_run_marks_stored_cost_as_earlier(self) -> None:
        write_notebook(self.folder, v4.new_code_cell(HOLD + "import time; time.sleep(1.2)"))
        variables = fake_gpu_variables(self.folder)
        self.assertEqual(run_notebook(self.folder, "nbclient", **variables).returncode, 0)
        # This command runs the notebook again without gpumon. The source and the execution count of
        # the cell stay the same, so they do not show that the cell ran again.
        again = [
            BIN / "jupyter",
            "nbconvert",
            "--execute",
            "--to",
            "notebook",
            "--inplace",
            "out.ipynb",
        ]
        subprocess.run(
            again, cwd=self.folder, env=os.environ | variables, check=True, capture_output=True
        )
        command = [
            gpumon.find_gpumon_bin(),
            "--config",
            "none",
            "notebook",
            "report",
            self.folder / "out.ipynb",
        ]
        report = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        self.assertRegex(report, r" 2 +\[1\] import ctypes, os .* k?J earlier run\n")

    def test_notebook_without_gpu_runs_with_one_warning(self) -> None:
        write_notebook(
            self.folder,
            v4.new_code_cell("print(6 * 7)", metadata=OLD),
            v4.new_code_cell("print('again')"),
        )
        for runner in RUNNERS:
            with self.subTest(runner):
                done = run_notebook(
                    self.folder,
                    runner,
                    GPUMON_NVML_LIB="/nowhere",
                    GPUMON_CONTROL=str(self.folder / "none"),
                )
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertEqual(done.stderr.count("GpumonWarning"), 1, done.stderr)
                self.assertEqual(stored_costs(self.folder), [None] * 3)
                self.assertIn('"42\\n"', (self.folder / "out.ipynb").read_text())

    def test_failed_cell_keeps_costs_of_earlier_cells(self) -> None:
        cells = [HOLD + "import time; time.sleep(1.2)", "time.sleep(0.1); 1 / 0", "never"]
        write_notebook(self.folder, *(v4.new_code_cell(code, metadata=OLD) for code in cells))
        done = run_notebook(self.folder, "papermill", **fake_gpu_variables(self.folder))
        self.assertIn("ZeroDivisionError", done.stderr)
        # papermill inserts two cells: one at the start, and one before the cell that failed.
        kept = [cost["duration_s"] for cost in stored_costs(self.folder) if cost]
        self.assertEqual(len(kept), 2, kept)
        self.assertTrue(kept[0] >= 1.2 and kept[1] >= 0.1, kept)

    def test_nbconvert_without_execution_measures_nothing(self) -> None:
        write_notebook(self.folder, v4.new_code_cell("x = 1", metadata=OLD))
        command = [word for word in RUNNERS["nbconvert"] if word != "--execute"]
        subprocess.run(
            command, cwd=self.folder, env=os.environ | {"GPUMON_NVML_LIB": "/nowhere"}, check=True
        )
        self.assertEqual(stored_costs(self.folder), [None, OLD["gpumon"]])


class Runs(unittest.TestCase):
    def test_stored_cost_matches_only_same_cell_run(self) -> None:
        for case in RUNS:
            with self.subTest(case["name"]):
                notebook = {
                    "nbformat": 4,
                    "nbformat_minor": 4,
                    "metadata": {},
                    "cells": [case["cell"]],
                }
                [cell] = nbformat.reads(json.dumps(notebook), nbformat.NO_CONVERT).cells
                self.assertEqual(cell_run(cell) == case["run"], case["fits"])


class Hooks(StandInTest):
    """Hooks with the stand-in for `gpumon measure`, and a client that runs nothing."""

    def setUp(self) -> None:
        super().setUp()
        self.client = NotebookClient(v4.new_notebook())
        self.client.km = types.SimpleNamespace(provisioner=types.SimpleNamespace(pid=4711))

    def execute(self, cell: nbformat.NotebookNode) -> float:
        """Call all hooks of a cell. Return the time that this took in milliseconds."""
        begun = time.perf_counter()
        self.client.on_cell_start(cell=cell, cell_index=0)
        self.client.on_cell_execute(cell=cell, cell_index=0)
        self.client.on_cell_executed(cell=cell, cell_index=0, execute_reply={})
        return (time.perf_counter() - begun) * 1000

    def test_slow_measurement_does_not_delay_cells(self) -> None:
        # The stand-in answers late, like the driver.
        self.set_faults("slow 0.5")
        cells = [v4.new_code_cell("x") for _ in range(100)]
        with cell_costs(self.client):
            taken = []
            for cell in cells:
                taken.append(self.execute(cell))
                time.sleep(0.005)
            self.set_faults("slow 0")
        self.assertLess(statistics.median(taken), 2)
        self.assertEqual([cell.metadata.gpumon.gpus for cell in cells], [["NVIDIA H200"]] * 100)

    def test_kernel_process_is_measured(self) -> None:
        with cell_costs(self.client):
            self.execute(v4.new_code_cell("x"))
        pids = {line["pid"] for line in self.wait_for_lines() if line.get("name") == "cell"}
        self.assertEqual(pids, {4711})

    def test_remote_kernel_is_reported_once_and_not_measured(self) -> None:
        self.client.km = types.SimpleNamespace(provisioner=types.SimpleNamespace(pid=None))
        cell = v4.new_code_cell("x", metadata=OLD)
        with warnings.catch_warnings(record=True) as told, cell_costs(self.client):
            warnings.simplefilter("always")
            self.execute(cell)
            self.execute(cell)
        self.assertEqual(
            [str(one.message).split(",")[0] for one in told],
            ["the kernel does not run on this machine"],
        )
        self.assertEqual(cell.metadata, {})

    def test_existing_client_hooks_are_called_and_kept(self) -> None:
        called = []
        self.client.on_cell_execute = mine = lambda **arguments: called.append(
            arguments["cell_index"]
        )
        with cell_costs(self.client):
            self.execute(v4.new_code_cell("x"))
        self.assertEqual(called, [0])
        self.assertIs(self.client.on_cell_execute, mine)
        self.assertIsNone(self.client.on_cell_executed)

    def test_cost_is_kept_when_kernel_dies(self) -> None:
        cell = v4.new_code_cell("x")
        with contextlib.suppress(RuntimeError), cell_costs(self.client):
            self.client.on_cell_execute(cell=cell, cell_index=0)
            raise RuntimeError("the kernel died")
        self.assertIn("gpumon", cell.metadata)

    def test_skipped_cell_keeps_cost_of_its_outputs(self) -> None:
        CellCosts(self.client)
        for tags, left in ((["skip-execution"], OLD["gpumon"]), ([], None)):
            cell = v4.new_code_cell("x", metadata=OLD | {"tags": tags})
            self.client.on_cell_start(cell=cell, cell_index=0)
            self.assertEqual(cell.metadata.get("gpumon"), left)


if __name__ == "__main__":
    unittest.main()
