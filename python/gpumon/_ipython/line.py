"""One line below a cell, which changes when its numbers are final."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from gpumon._ipython.output import Output
from gpumon._text import seconds

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from gpumon._measurement import Measurement


class Line:
    """What a cell took.

    The driver tells the last part of a cell's readings up to two seconds after its end. Nobody should wait for that between
    two cells, so the line has the duration at first, and a thread fills in the rest.
    """

    def __init__(self, shell: InteractiveShell, measurement: Measurement) -> None:
        self._measurement = measurement
        #: Terminals cannot change what they have shown: there, the whole line comes later, above the prompt.
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
        text = str(self._measurement)
        if self._output is None:
            print(text)
        else:
            self._output.change_line(text)
        self._text = text
