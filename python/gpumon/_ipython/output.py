"""Output in a front end: text, or HTML if the front end supports it."""

from __future__ import annotations

import importlib
from typing import Any

from gpumon._html import line_html
from gpumon._text import escape_unencodable


class Output:
    """One output. Front ends of Jupyter can update it."""

    def __init__(self, text: str, html: str) -> None:
        """Show the output below the running cell."""
        # IPython's type annotations are incomplete.
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
