"""One line below a cell, which is updated when its numbers are final."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gpumon._helper import current_helper
from gpumon._ipython.output import Output
from gpumon._table import cost_line
from gpumon._text import escape_unencodable, format_seconds

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from gpumon._measurement import Measurement


class CostLine:
    """The cost of a cell, in one line.

    The driver reports the last readings of a cell up to three seconds after its end. The next cell
    does not wait for them: the line shows the duration at first, and a thread adds the other
    numbers.
    """

    def __init__(self, shell: InteractiveShell, measurement: Measurement, told: set[str]) -> None:
        """Create a line. All lines of a shell share `told`, the reasons for missing measurements
        that were already shown.
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
        # A daemon thread does not keep a kernel from exiting while it waits for numbers.
        threading.Thread(target=self._show_final_cost, name="gpumon", daemon=True).start()

    def show_again(self) -> bool:
        """Show the line again if it is final; return whether it is."""
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
        # The text is stored before it is shown, because a front end may run the next cell as soon
        # as it has the line.
        self._text = text
        if self._output is None:
            # No line is printed to a terminal session that is exiting.
            if not current_helper().is_over:
                print(escape_unencodable(text))
        else:
            self._output.change_line(text)
