"""A line of cost below each cell, from ``%gpu on`` to ``%gpu off``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gpumon._ipython.line import Line
from gpumon._measurement import Measurement

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class CellLines:
    """The hooks of a shell. They wait for nothing: a cell takes at most two milliseconds more."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._is_on = False
        self._measurement: Measurement | None = None
        self._lines: list[Line] = []
        #: Why nothing is measured, as lines have said already.
        self._told: set[str] = set()

    def on(self) -> None:
        """From the next cell on."""
        if not self._is_on:
            self._is_on = True
            self._told.clear()
            self._shell.events.register("pre_run_cell", self._before)
            self._shell.events.register("post_run_cell", self._after)

    def off(self) -> None:
        """Not below this cell any more."""
        if self._is_on:
            self._is_on = False
            self._measurement = None
            self._shell.events.unregister("pre_run_cell", self._before)
            self._shell.events.unregister("post_run_cell", self._after)

    def skip(self) -> None:
        """Not below the cell that runs: it shows what it takes itself."""
        self._measurement = None

    def _before(self, info: Any) -> None:
        # A front end that reads a kernel's messages only while a cell runs, as nbclient does, has
        # missed those that came after it. So what is final is shown once more with the next cell;
        # the last cell of such a run keeps its duration alone.
        self._lines = [line for line in self._lines if not line.show_again()]
        if info.store_history:
            self._measurement = Measurement().start()

    def _after(self, result: Any) -> None:
        # A cell within a cell, as the one that ``%%capture`` runs, ends before the one around it.
        if not result.info.store_history:
            return
        measurement, self._measurement = self._measurement, None
        # None below the cell that has switched this on.
        if measurement is not None:
            measurement.stop()
            line = Line(self._shell, measurement, self._told)
            line.show()
            self._lines.append(line)
