"""The readings during a cell, and their SVG charts for light and dark notebooks."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple, Optional

from gpumon._errors import ProgramError
from gpumon._helper import current_helper
from gpumon._mail import Json
from gpumon._results import cost_html
from gpumon._snapshot import find_reading
from gpumon._text import format_bytes, format_seconds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

#: The interval of samples, in seconds.
INTERVAL_S = 0.5
#: The maximum number of samples of a cell. If there are more, every second sample is dropped, and
#: the interval of new samples is doubled.
MOST_SAMPLES = 240
#: Line colors with a contrast of at least 3:1 on white and on the dark backgrounds of notebooks.
#: All themes use the same colors, because SVG can only query the browser's theme, which may differ
#: from the notebook's. Text inherits its color.
COLORS = ("#1f83c9", "#cc5c00", "#0e8f6b", "#b25aa5", "#8a7a12", "#d0485b", "#6f6bd6", "#7d7d7d")
#: The maximum number of lines in one chart.
MOST_GPUS = len(COLORS)
WIDTH, HEIGHT, LEFT, TOP, GAP = 280, 56, 4, 14, 20


class Sample(NamedTuple):
    """The readings of one GPU at one point in time."""

    at_ms: float
    utilization_percent: Optional[float]
    memory_bytes: Optional[float]


class Samples:
    """Collects samples of all GPUs inside a ``with`` block."""

    def __init__(self) -> None:
        self._of_gpus: dict[int, list[Sample]] = {}
        self._came = 0
        self._every = 1
        self._helper = current_helper()
        self._number: int | None = None

    def __enter__(self) -> Samples:
        # The error is ignored here, because the measurement of the same cell reports the reason.
        with contextlib.suppress(ProgramError):
            self._number = self._helper.subscribe(INTERVAL_S, self.add)
        return self

    def __exit__(self, *_error: object) -> None:
        if self._number is not None:
            self._helper.unsubscribe(self._number)

    def samples_by_gpu(self) -> dict[int, list[Sample]]:
        """Return the samples of each GPU, by index."""
        return {index: list(samples) for index, samples in sorted(self._of_gpus.items())}

    def add(self, sample: Json) -> None:
        """Store the readings that the charts show."""
        self._came += 1
        if self._came % self._every:
            return
        for gpu in sample["gpus"]:
            kept = Sample(
                sample["at_ms"],
                find_reading(gpu, "utilization.gpu_percent"),
                find_reading(gpu, "memory.used_bytes"),
            )
            self._of_gpus.setdefault(gpu["index"], []).append(kept)
        if max((len(samples) for samples in self._of_gpus.values()), default=0) > MOST_SAMPLES:
            self._every *= 2
            for samples in self._of_gpus.values():
                del samples[::2]


def cost_and_chart_html(cost: Mapping[str, Any], samples: Mapping[int, list[Sample]]) -> str:
    """Return the cost of a cell as text, next to a chart of the GPUs that the cell used."""
    held = {gpu["index"] for gpu in cost["gpus"]}
    shown = {index: taken for index, taken in samples.items() if not held or index in held}
    text = f"<div>{cost_html(cost)}</div>"
    return (
        f'<div style="display:flex;flex-wrap:wrap;gap:0.5em '
        f'1.5em;align-items:center">{text}{chart_svg(shown)}</div>'
    )


def chart_svg(samples: Mapping[int, list[Sample]]) -> str:
    """Return two charts, one below the other, or an empty string for fewer than two samples."""
    shown = {index: taken for index, taken in list(samples.items())[:MOST_GPUS] if len(taken) > 1}
    if not shown:
        return ""
    begin = min(taken[0].at_ms for taken in shown.values())
    end = max(begin + 1, *(taken[-1].at_ms for taken in shown.values()))
    most = (
        max((sample.memory_bytes or 0 for taken in shown.values() for sample in taken), default=0)
        or 1
    )

    def points_by_gpu(
        read: Callable[[Sample], Optional[float]], maximum: float
    ) -> dict[int, Points]:
        return {
            index: [
                ((sample.at_ms - begin) / (end - begin), _relative_value(read(sample), maximum))
                for sample in taken
            ]
            for index, taken in shown.items()
        }

    utilization = points_by_gpu(lambda sample: sample.utilization_percent, 100)
    memory = points_by_gpu(lambda sample: sample.memory_bytes, most)
    second = TOP + HEIGHT + GAP
    height = second + HEIGHT + 16
    parts = [
        *_draw_panel("GPU utilization", "100 %", TOP, utilization),
        *_draw_panel("Memory", format_bytes(most), second, memory),
        *(_draw_legend(shown, second + HEIGHT + 12) if len(shown) > 1 else ()),
        _format_right_label(format_seconds((end - begin) / 1000), second + HEIGHT + 12),
    ]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="GPU utilization and '
        f'memory during the cell" '
        f'viewBox="0 0 {WIDTH + 2 * LEFT} {height}" width="{WIDTH + 2 * LEFT}" '
        f'style="max-width:100%;height:auto" '
        f'font-family="inherit" font-size="10" fill="currentColor">{"".join(parts)}</svg>'
    )


def _relative_value(value: float | None, of: float) -> float | None:
    return None if value is None else min(1.0, max(0.0, value / of))


Points = list[tuple[float, "float | None"]]


def _draw_panel(
    title: str, top_label: str, top: float, lines: Mapping[int, Points]
) -> Iterator[str]:
    bottom = top + HEIGHT
    yield f'<text x="{LEFT}" y="{top - 4}">{title}</text>'
    yield _format_right_label(top_label, top - 4)
    for y in (top, bottom):
        yield (
            f'<line x1="{LEFT}" x2="{LEFT + WIDTH}" y1="{y}" y2="{y}" stroke="currentColor" '
            f'stroke-width="0.5" opacity="0.35"/>'
        )
    for number, points in enumerate(lines.values()):
        yield (
            f'<path d="{_path_data(points, bottom)}" fill="none" stroke="{COLORS[number]}" '
            f'stroke-width="1.5" '
            f'stroke-linejoin="round" stroke-linecap="round"/>'
        )


def _format_right_label(text: str, y: float) -> str:
    return f'<text x="{LEFT + WIDTH}" y="{y}" text-anchor="end" opacity="0.75">{text}</text>'


def _path_data(points: Iterable[tuple[float, float | None]], bottom: float) -> str:
    """Return the path of a line, with a gap for each absent reading."""
    steps: list[str] = []
    is_drawing = False
    for x, y in points:
        if y is not None:
            steps.append(
                f"{'L' if is_drawing else 'M'}{LEFT + x * WIDTH:.1f} {bottom - y * HEIGHT:.1f}"
            )
        is_drawing = y is not None
    return "".join(steps)


def _draw_legend(indices: Iterable[int], y: float) -> Iterator[str]:
    yield f'<text x="{LEFT}" y="{y}">GPU</text>'
    for number, index in enumerate(indices):
        yield (
            f'<text x="{LEFT + 26 + 18 * number}" y="{y}" fill="{COLORS[number]}" '
            f'font-weight="bold">{index}</text>'
        )
