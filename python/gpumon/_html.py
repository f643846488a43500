"""HTML of results. Text color and font are inherited, so the HTML suits light and dark notebook
themes.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from gpumon._table import (
    HEADINGS,
    cost_parts,
    energy_text,
    snapshot_cells,
    snapshot_notes,
    spread_text,
)
from gpumon._text import DASH, format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpumon._snapshot import Snapshot

SMALL = "font-size:smaller;opacity:0.75"


def line_html(text: str) -> str:
    """Return a line in small, pale text."""
    return f'<div class="gpumon" style="{SMALL}">{escape(text)}</div>'


def cost_html(cost: Mapping[str, Any]) -> str:
    """Return a summary in one line, a table of the GPUs, and notes about missing numbers."""
    line = ", ".join(cost_parts(cost))
    name = f"<b>{escape(cost['name'])}</b>: " if cost["name"] else ""
    parts = [f"<div>{name}{escape(line)}</div>"]
    if cost["gpus"]:
        headings = ("GPU", "Name", "GPU time", "SM active", "Peak memory", "Energy")
        parts.append(_format_table(headings, [_gpu_cells(gpu) for gpu in cost["gpus"]]))
    # If there are no GPUs, the summary already contains the first reason for missing numbers.
    parts.append(_format_notes(cost["lost"] if cost["gpus"] else cost["lost"][1:]))
    return f'<div class="gpumon">{"".join(parts)}</div>'


def _gpu_cells(gpu: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        str(gpu["index"]),
        gpu["name"] or DASH,
        DASH if gpu["gpu_s"] is None else format_seconds(gpu["gpu_s"]),
        spread_text(gpu["sm_percent"]),
        DASH if gpu["peak_memory_bytes"] is None else format_bytes(gpu["peak_memory_bytes"]),
        DASH if gpu["energy_joules"] is None else energy_text(gpu["energy_joules"], gpu["shared"]),
    )


def snapshot_html(snapshot: Snapshot) -> str:
    """Return a table of the GPUs, followed by conditions and processes."""
    return (
        f'<div class="gpumon">{_format_table(HEADINGS, snapshot_cells(snapshot))}'
        f"{_format_notes(snapshot_notes(snapshot))}</div>"
    )


def _format_table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    def format_cells(tag: str, texts: Sequence[str]) -> str:
        # The second column is a name and is aligned to the left; the others are numbers.
        return "".join(
            f'<{tag} style="text-align:{"left" if at == 1 else "right"};padding:0.1em '
            f'0.5em">{escape(text)}</{tag}>'
            for at, text in enumerate(texts)
        )

    body = "".join(f"<tr>{format_cells('td', row)}</tr>" for row in rows)
    return (
        '<table style="margin:0.3em 0;color:inherit;font-size:inherit">'
        f"<thead><tr>{format_cells('th', headings)}</tr></thead><tbody>{body}</tbody></table>"
    )


def _format_notes(texts: Iterable[str]) -> str:
    return "".join(line_html(text) for text in texts)
