"""What is shown in a front end: text, and HTML where it can be shown."""

from __future__ import annotations

import importlib
from typing import Any

from gpumon._html import line_html
from gpumon._text import encodable


class Output:
    """One output, which may be changed in front ends of Jupyter."""

    def __init__(self, text: str, html: str) -> None:
        """Show it below the cell that runs."""
        # IPython's own types are incomplete.
        display: Any = importlib.import_module("IPython.display").display
        self._handle: Any = display(_bundle(text, html), raw=True, display_id=True)

    @classmethod
    def line(cls, text: str) -> Output:
        """Show one unobtrusive line."""
        return cls(text, line_html(text))

    def change_line(self, text: str) -> None:
        """Show another line in its place."""
        self._handle.update(_bundle(text, line_html(text)), raw=True)


def _bundle(text: str, html: str) -> dict[str, str]:
    # A terminal prints the text.
    return {"text/plain": encodable(text), "text/html": html}
