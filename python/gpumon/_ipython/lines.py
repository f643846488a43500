"""The lines that show the costs of cells from ``%gpu on`` to ``%gpu off``, and the class that shows
output in a front end.
"""

from __future__ import annotations

import importlib
import threading
from typing import TYPE_CHECKING, Any

from gpumon._helper import current_helper
from gpumon._measurement import Measurement
from gpumon._results import cost_line, line_html
from gpumon._text import escape_unencodable, format_seconds

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell


class CellLines:
    """The hooks of a shell. They never wait, and add at most two milliseconds to a cell."""

    def __init__(self, shell: InteractiveShell) -> None:
        self._shell = shell
        self._is_on = False
        self._measurement: Measurement | None = None
        self._lines: list[CostLine] = []
        #: The already shown reasons for missing measurements.
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
        # miss updates that arrive later. So a line that has become final is shown again when the
        # next cell runs. In such a front end, the line of the last cell only shows the duration,
        # because no cell follows.
        self._lines = [line for line in self._lines if not line.show_again_if_final()]
        if info.store_history:
            self._measurement = Measurement().start()

    def _on_cell_end(self, result: Any) -> None:
        # ``%%capture`` runs an inner cell, which ends before the outer cell and is not stored in
        # the history. Only the end of the outer cell counts.
        if not result.info.store_history:
            return
        measurement, self._measurement = self._measurement, None
        # The cell that ran ``%gpu on`` has no measurement, because the magic only took effect while
        # the cell ran.
        if measurement is not None:
            measurement.stop()
            line = CostLine(self._shell, measurement, self._told)
            line.show()
            self._lines.append(line)


class CostLine:
    """The cost of a cell, in one line, which is updated when its numbers are final.

    The driver reports the last readings of a cell up to three seconds after its end. The next cell
    does not wait for them: the line shows the duration at first, and a thread adds the other
    numbers.
    """

    def __init__(self, shell: InteractiveShell, measurement: Measurement, told: set[str]) -> None:
        """Create a line. All lines of a shell share `told`, which contains the already shown
        reasons for missing measurements.
        """
        self._measurement = measurement
        self._told = told
        #: Whether the output can be updated. A terminal cannot update its output, so the complete
        #: line is printed later, above the prompt.
        self._can_change = hasattr(shell, "kernel")
        self._output: Output | None = None
        self._text: str | None = None

    def show(self) -> None:
        """Show the known numbers, and update the line when the others are known."""
        if self._can_change:
            self._output = Output.show_line(
                f"{format_seconds(self._measurement.duration_s)}, GPU …"
            )
        # The thread is a daemon, so that a kernel can exit while the thread waits for numbers.
        threading.Thread(target=self._show_final_cost, name="gpumon", daemon=True).start()

    def show_again_if_final(self) -> bool:
        """Show the line again if its numbers are final. Return whether they are."""
        text = self._text
        if text is not None and self._output is not None:
            self._output.change_line(text)
        return text is not None

    def _show_final_cost(self) -> None:
        cost = self._measurement.to_dict()
        reason = cost["lost"][0] if cost["lost"] and not cost["gpus"] else None
        text = (
            f"{format_seconds(cost['duration_s'])}, GPU not measured"
            if reason in self._told
            else cost_line(cost)
        )
        if reason is not None:
            self._told.add(reason)
        # The text is stored before it is shown, because a front end may start the next cell as soon
        # as it receives the line.
        self._text = text
        if self._output is None:
            # No line is printed to a terminal session that is exiting.
            if not current_helper().has_ended:
                print(escape_unencodable(text))
        else:
            self._output.change_line(text)


class Output:
    """One output: text, or HTML if the front end supports it. Front ends of Jupyter can update
    it.
    """

    def __init__(self, text: str, html: str) -> None:
        """Show the output below the running cell."""
        # IPython's type annotations are incomplete, so the function is imported dynamically,
        # without a type.
        display: Any = importlib.import_module("IPython.display").display
        self._handle: Any = display(_mime_bundle(text, html), raw=True, display_id=True)

    @classmethod
    def show_line(cls, text: str) -> Output:
        """Show a line in small, pale text."""
        return cls(text, line_html(text))

    def change_line(self, text: str) -> None:
        """Replace the output by another line."""
        self._handle.update(_mime_bundle(text, line_html(text)), raw=True)


def _mime_bundle(text: str, html: str) -> dict[str, str]:
    # Terminals print the plain text.
    return {"text/plain": escape_unencodable(text), "text/html": html}
