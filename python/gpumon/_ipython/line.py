"""One line below a cell, which changes when its numbers are final."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gpumon._helper import current
from gpumon._ipython.output import Output
from gpumon._table import cost_line
from gpumon._text import encodable, seconds

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from gpumon._measurement import Measurement


class Line:
    """What a cell took.

    The driver tells the last part of a cell's readings up to three seconds after its end. Nobody
    should wait for that between two cells, so the line has the duration at first, and a thread
    fills in the rest.
    """

    def __init__(self, shell: InteractiveShell, measurement: Measurement, told: set[str]) -> None:
        """Say why nothing is measured only where `told`, which those of a shell share, has not got
        that.
        """
        self._measurement = measurement
        self._told = told
        #: Terminals cannot change what they have shown: there, the whole line comes later, above
        #: the prompt.
        self._can_change = hasattr(shell, "kernel")
        self._output: Output | None = None
        self._text: str | None = None

    def show(self) -> None:
        """Show what is known, and the rest when it is known."""
        if self._can_change:
            self._output = Output.line(f"{seconds(self._measurement.duration_s)}, GPU …")
        # A daemon, since a kernel that ends must not wait for numbers.
        threading.Thread(target=self._finish, name="gpumon", daemon=True).start()

    def show_again(self) -> bool:
        """Show it once more, as soon as it is final; return whether it is."""
        text = self._text
        if text is not None and self._output is not None:
            self._output.change_line(text)
        return text is not None

    def _finish(self) -> None:
        cost = self._measurement.to_dict()
        reason = cost["lost"][0] if cost["lost"] and not cost["gpus"] else None
        text = (
            f"{seconds(cost['duration_s'])}, GPU not measured"
            if reason in self._told
            else cost_line(cost)
        )
        if reason is not None:
            self._told.add(reason)
        # First, since a front end may run the next cell as soon as it has the line.
        self._text = text
        if self._output is None:
            # A terminal that is left wants no line any more.
            if not current().is_over:
                print(encodable(text))
        else:
            self._output.change_line(text)
