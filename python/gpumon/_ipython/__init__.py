"""The IPython extension of ``%load_ext gpumon``: magics, and a line below each cell.

- `magics`: ``%gpu``, ``%%gpu``, ``%gpu on`` and ``%gpu off``.
- `cells`: the hooks around each cell.
- `line`: the line below a cell, which is updated when its numbers are final.
- `output`: the output that shows this line in a front end.
- `samples`: the readings during a cell.
- `chart`: these readings as SVG.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from gpumon._ipython.cells import CellLines
from gpumon._ipython.magics import GpuMagics

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

_lines: dict[int, CellLines] = {}


def load_magics(shell: InteractiveShell) -> None:
    """Register the magics of a shell."""
    lines = _lines.setdefault(id(shell), CellLines(shell))
    shell.register_magics(GpuMagics(shell, lines))


def unload_magics(shell: InteractiveShell) -> None:
    """Remove the hooks of a shell, so that its cells no longer show a line."""
    lines = _lines.pop(id(shell), None)
    if lines is not None:
        lines.disable()
