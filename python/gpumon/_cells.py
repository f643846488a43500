"""Measures the cost of notebook cells that run without a browser, through hooks of nbclient, the
library behind papermill and nbconvert.
"""

from __future__ import annotations

import contextlib
import warnings
import zlib
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Callable, Optional

import gpumon

if TYPE_CHECKING:
    from collections.abc import Iterator

    from nbclient import NotebookClient
    from nbformat import NotebookNode

    from gpumon import CellRun, Measurement, StoredCost

#: The key in a cell's metadata under which the cell's cost is stored.
KEY = "gpumon"


class CellCosts:
    """Measures each cell that a client executes, and writes its cost to `cell.metadata.gpumon`.

    Starting and ending a measurement take no time. The numbers are final up to three seconds after
    the end of a cell. A thread waits for them while the next cells run, and they are written when a
    later cell starts, or by `finish`.
    """

    def __init__(self, client: NotebookClient) -> None:
        """Add this object's hooks to a client. The hooks that the client already has are still
        called.
        """
        self._client = client
        self._warm: Measurement | None = None
        self._running: tuple[NotebookNode, Measurement] | None = None
        self._ended: list[tuple[NotebookNode, Future[Optional[StoredCost]]]] = []
        self._waiter: ThreadPoolExecutor | None = None
        self._is_remote_told = False
        ours: dict[str, Callable[..., None]] = {
            "on_notebook_start": self._on_notebook_start,
            "on_cell_start": self._on_cell_start,
            "on_cell_execute": self._on_cell_execute,
            "on_cell_executed": self._on_cell_executed,
        }
        self._hooks_before = {name: getattr(client, name) for name in ours}
        for name, hook in ours.items():
            setattr(client, name, _combine_hooks(hook, self._hooks_before[name]))

    def start(self) -> None:
        """Start reading the GPUs, so that the first cell does not have to wait. Call this before
        the kernel starts.
        """
        if self._warm is None:
            self._warm = gpumon.measure("notebook")
            self._warm.start()

    def finish(self) -> None:
        """Write the costs of all cells when they are final, at most three seconds after the last
        cell.
        """
        self._end_measurement()
        self._write_final_costs(is_last=True)
        if self._waiter is not None:
            self._waiter.shutdown()
        self._warm = self._waiter = None

    def restore_client_hooks(self) -> None:
        """Restore the client's own hooks."""
        for name, hook in self._hooks_before.items():
            setattr(self._client, name, hook)

    def _on_notebook_start(self, **_: Any) -> None:
        self._running, self._ended = None, []
        self.start()

    def _on_cell_start(self, cell: NotebookNode, **_: Any) -> None:
        # A skipped cell keeps its old outputs, so it also keeps the cost of the run that produced
        # these outputs.
        if self._client.skip_cells_with_tag not in cell.metadata.get("tags", []):
            remove_cost(cell)

    def _on_cell_execute(self, cell: NotebookNode, **_: Any) -> None:
        self._end_measurement()
        self._write_final_costs(is_last=False)
        pid = kernel_pid(self._client)
        if pid is None:
            self._warn_of_remote_kernel()
        else:
            # `gpumon.measure` is not used here, because it would raise an error if the kernel has
            # just died.
            self._running = cell, gpumon.Measurement("cell", pid).start()

    def _on_cell_executed(self, **_: Any) -> None:
        self._end_measurement()

    def _end_measurement(self) -> None:
        """End the running measurement, if there is one. If a kernel dies, the hook at the end of
        its cell is not called, so this method is also called when the next cell starts.
        """
        if self._running is None:
            return
        cell, measurement = self._running
        self._running = None
        measurement.stop()
        if self._waiter is None:
            self._waiter = ThreadPoolExecutor(1, "gpumon-cells")
        self._ended.append((cell, self._waiter.submit(measurement.stored)))

    def _write_final_costs(self, is_last: bool) -> None:
        """Write the costs that are final. If `is_last` is set, wait for the others and write them,
        too. Only this method writes costs, and no thread does, because other programs may save the
        notebook between two hooks.
        """
        left = []
        for cell, stored in self._ended:
            if is_last or stored.done():
                write_cost(cell, stored.result())
            else:
                left.append((cell, stored))
        self._ended = left

    def _warn_of_remote_kernel(self) -> None:
        if not self._is_remote_told:
            self._is_remote_told = True
            warnings.warn(
                "the kernel does not run on this machine, so the cost of its cells is not "
                "measured: run the notebook on the machine of its kernel",
                gpumon.GpumonWarning,
                stacklevel=2,
            )


@contextlib.contextmanager
def cell_costs(client: NotebookClient) -> Iterator[None]:
    """Measure the cells that a client executes in this block. The metadata is complete when the
    block ends, even with an exception.
    """
    costs = CellCosts(client)
    costs.start()
    try:
        yield
    finally:
        costs.restore_client_hooks()
        costs.finish()


def kernel_pid(client: NotebookClient) -> int | None:
    """Return the PID of a client's kernel; `None` if the kernel runs elsewhere, for example in a
    cluster.
    """
    pid = getattr(getattr(client.km, "provisioner", None), "pid", None)
    return pid if isinstance(pid, int) else None


def write_cost(cell: NotebookNode, stored: StoredCost | None) -> None:
    """Write the cost of a cell's last run, if the cell used a GPU."""
    if stored is not None:
        cell.metadata[KEY] = {**stored, "run": cell_run(cell)}


def cell_run(cell: NotebookNode) -> CellRun:
    """Return the values that identify the last run of a cell.

    `tests/stored-cost-runs.json` has test cases for comparing these values with those in a stored
    cost.
    """
    execution = cell.metadata.get("execution")
    started = execution.get("iopub.execute_input") if isinstance(execution, dict) else None
    return {
        "source_crc32": zlib.crc32(cell.source.encode(errors="replace")),
        "execution_count": cell.execution_count,
        "started": started if isinstance(started, str) else None,
    }


def remove_cost(cell: NotebookNode) -> None:
    """Remove the cost of an earlier run."""
    cell.metadata.pop(KEY, None)


def _combine_hooks(
    first: Callable[..., None], then: Callable[..., Any] | None
) -> Callable[..., Any]:
    """Return a hook that calls both hooks. It returns the result of the second hook, which nbclient
    awaits.
    """

    def call_hooks(**arguments: Any) -> Any:
        first(**arguments)
        return None if then is None else then(**arguments)

    return call_hooks
