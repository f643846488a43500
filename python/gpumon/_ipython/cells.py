"""A line with the cost of each cell, from ``%gpu on`` to ``%gpu off``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpumon._ipython.line import CostLine
from gpumon._measurement import Measurement

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class CellLines:
    """The hooks of a shell. They never wait, and add at most two milliseconds to a cell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._is_on = False
        self._measurement: Measurement | None = None
        self._lines: list[CostLine] = []
        #: The reasons for missing measurements that were already shown.
        self._told: set[str] = set()

    def enable(self) -> None:
        """Show a line below each cell, starting with the next cell."""
        if not self._is_on:
            self._is_on = True
            self._told.clear()
            self._shell.events.register("pre_run_cell", self._on_cell_start)
            self._shell.events.register("post_run_cell", self._on_cell_end)

    def disable(self) -> None:
        """Stop showing lines, including the line of the running cell."""
        if self._is_on:
            self._is_on = False
            self._measurement = None
            self._shell.events.unregister("pre_run_cell", self._on_cell_start)
            self._shell.events.unregister("post_run_cell", self._on_cell_end)

    def skip_cell(self) -> None:
        """Show no line below the running cell, because its ``%%gpu`` magic shows the cost."""
        self._measurement = None

    def _on_cell_start(self, info: Any) -> None:
        # Some front ends, such as nbclient, read a kernel's messages only while a cell runs, and
        # miss updates that arrive later. So a final line is shown again with the next cell. The
        # last cell of such a run only shows its duration.
        self._lines = [line for line in self._lines if not line.show_again()]
        if info.store_history:
            self._measurement = Measurement().start()

    def _on_cell_end(self, result: Any) -> None:
        # ``%%capture`` runs an inner cell, which ends before the outer cell and is not stored in
        # the history. Only the end of the outer cell counts.
        if not result.info.store_history:
            return
        measurement, self._measurement = self._measurement, None
        # The cell that ran ``%gpu on`` has no measurement.
        if measurement is not None:
            measurement.stop()
            line = CostLine(self._shell, measurement, self._told)
            line.show()
            self._lines.append(line)
