"""What the cells of a notebook cost that is run without a browser: hooks of nbclient, on which
papermill and nbconvert stand.
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

#: The key of a cell's metadata.
KEY = "gpumon"


class CellCosts:
    """Measures each cell that a client executes, and writes what it cost to `cell.metadata.gpumon`.

    Beginning and ending a measurement wait for nothing. The numbers are final up to three seconds
    after a cell has ended: a thread waits for them while the next cells run, and they are written
    when one of these begins, or by `finish`.
    """

    def __init__(self, client: NotebookClient) -> None:
        """Hook into a client. Hooks that it has already are still called."""
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
            setattr(client, name, _both(hook, self._hooks_before[name]))

    def start(self) -> None:
        """Begin to read the GPUs, so that the first cell finds that done: best before the kernel
        starts.
        """
        if self._warm is None:
            self._warm = gpumon.measure("notebook")
            self._warm.start()

    def finish(self) -> None:
        """Write the costs of all cells, once they are final: three seconds after the last cell at
        most.
        """
        self._end()
        self._write(is_last=True)
        if self._waiter is not None:
            self._waiter.shutdown()
        self._warm = self._waiter = None

    def detach(self) -> None:
        """Leave the client as it was."""
        for name, hook in self._hooks_before.items():
            setattr(self._client, name, hook)

    def _on_notebook_start(self, **_: Any) -> None:
        self._running, self._ended = None, []
        self.start()

    def _on_cell_start(self, cell: NotebookNode, **_: Any) -> None:
        # One that is skipped keeps its outputs, and what these have cost.
        if self._client.skip_cells_with_tag not in cell.metadata.get("tags", []):
            forget(cell)

    def _on_cell_execute(self, cell: NotebookNode, **_: Any) -> None:
        self._end()
        self._write(is_last=False)
        pid = kernel_pid(self._client)
        if pid is None:
            self._warn_of_remote_kernel()
        else:
            # `gpumon.measure` would refuse a kernel that has just died.
            self._running = cell, gpumon.Measurement("cell", pid).start()

    def _on_cell_executed(self, **_: Any) -> None:
        self._end()

    def _end(self) -> None:
        """End what runs: also of a cell after which nobody was called, since its kernel has died."""
        if self._running is None:
            return
        cell, measurement = self._running
        self._running = None
        measurement.stop()
        if self._waiter is None:
            self._waiter = ThreadPoolExecutor(1, "gpumon-cells")
        self._ended.append((cell, self._waiter.submit(measurement.stored)))

    def _write(self, is_last: bool) -> None:
        """Write what is known; of the end, wait for it. Only here, as others save the notebook
        between two hooks.
        """
        left = []
        for cell, stored in self._ended:
            if is_last or stored.done():
                write(cell, stored.result())
            else:
                left.append((cell, stored))
        self._ended = left

    def _warn_of_remote_kernel(self) -> None:
        if not self._is_remote_told:
            self._is_remote_told = True
            warnings.warn(
                "the kernel is no process of this machine: what its cells cost is not measured; run the notebook where "
                "its kernel is",
                gpumon.GpumonWarning,
                stacklevel=2,
            )


@contextlib.contextmanager
def cell_costs(client: NotebookClient) -> Iterator[None]:
    """Measure the cells that a client executes in this block; their metadata is complete at its
    end, whatever ends it.
    """
    costs = CellCosts(client)
    costs.start()
    try:
        yield
    finally:
        costs.detach()
        costs.finish()


def kernel_pid(client: NotebookClient) -> int | None:
    """Return the PID of a client's kernel; `None` where it runs elsewhere, as in a cluster."""
    pid = getattr(getattr(client.km, "provisioner", None), "pid", None)
    return pid if isinstance(pid, int) else None


def write(cell: NotebookNode, stored: StoredCost | None) -> None:
    """Write what the last run of a cell cost, if it held a GPU."""
    if stored is not None:
        cell.metadata[KEY] = {**stored, "run": run_of(cell)}


def run_of(cell: NotebookNode) -> CellRun:
    """Identify the last run of a cell by what the cell records.

    `tests/stored-cost-runs.json` has cases of how it is compared with the run of a stored cost.
    """
    execution = cell.metadata.get("execution")
    started = execution.get("iopub.execute_input") if isinstance(execution, dict) else None
    return {
        "source_crc32": zlib.crc32(cell.source.encode(errors="replace")),
        "execution_count": cell.execution_count,
        "started": started if isinstance(started, str) else None,
    }


def forget(cell: NotebookNode) -> None:
    """Remove what an earlier run has cost."""
    cell.metadata.pop(KEY, None)


def _both(first: Callable[..., None], then: Callable[..., Any] | None) -> Callable[..., Any]:
    """Return a hook that calls both; nbclient waits for what the second returns."""

    def hook(**arguments: Any) -> Any:
        first(**arguments)
        return None if then is None else then(**arguments)

    return hook
