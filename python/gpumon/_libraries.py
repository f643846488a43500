"""Results as objects of optional libraries: data frames of pandas and polars, and figures of
Matplotlib.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from gpumon._text import GIB

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import matplotlib.figure
    import pandas
    import polars

    from gpumon._history import History


def import_library(module: str, what: str) -> Any:
    """Import a library.

    Raises:
        ImportError: the library is not installed. The message names the command that installs it.
    """
    library = module.partition(".")[0]
    try:
        importlib.import_module(library)
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != library:
            raise
        raise ImportError(
            f"{what} needs {library}, which is not installed: run `pip install {library}`"
        ) from error


def make_pandas_frame(
    rows: list[dict[str, Any]], columns: Sequence[str] | None = None
) -> pandas.DataFrame:
    """Return the rows as a `pandas.DataFrame`. Pass the columns if there may be no rows."""
    frame: pandas.DataFrame = import_library("pandas", "to_pandas()").DataFrame(
        rows, columns=columns
    )
    return frame


def make_polars_frame(
    rows: list[dict[str, Any]], columns: Sequence[str] | None = None
) -> polars.DataFrame:
    """Return the rows as a `polars.DataFrame`. Pass the columns if there may be no rows."""
    # The first rows may contain only absent readings, so all rows are needed to infer the types.
    frame: polars.DataFrame = import_library("polars", "to_polars()").DataFrame(
        rows, schema=columns, infer_schema_length=None
    )
    return frame


def plot_cost(cost: Mapping[str, Any]) -> matplotlib.figure.Figure:
    """Return bar charts of GPU time, peak memory, and energy with its range, by GPU."""
    gpus: list[dict[str, Any]] = cost["gpus"]
    figure = _new_figure((9.0, 1.6 + 0.4 * len(gpus)))
    labels = [f"GPU {gpu['index']}" for gpu in gpus]
    charts = figure.subplots(1, 3, sharey=True)
    _draw_bars(charts[0], labels, [gpu["gpu_s"] for gpu in gpus], "GPU time (s)")
    memory = [
        None if gpu["peak_memory_bytes"] is None else gpu["peak_memory_bytes"] / GIB for gpu in gpus
    ]
    _draw_bars(charts[1], labels, memory, "Peak memory (GiB)")
    energy = [gpu["energy_joules"] for gpu in gpus]
    _draw_bars(
        charts[2],
        labels,
        [None if one is None else one["estimate"] for one in energy],
        "Energy (J)",
    )
    for at, one in enumerate(energy):
        if one is not None and one["least"] != one["most"]:
            charts[2].hlines(labels[at], one["least"], one["most"], colors="black")
    charts[0].invert_yaxis()
    figure.suptitle(cost["name"] or "GPUs")
    return figure


def _draw_bars(chart: Any, labels: list[str], values: list[float | None], title: str) -> None:
    chart.barh(labels, [value or 0 for value in values])
    for label, value in zip(labels, values):
        if value is None:
            chart.text(0, label, " not known", va="center")
    chart.set_xlabel(title)


def plot_history(history: History) -> matplotlib.figure.Figure:
    """Return a figure with a chart for each field and a line for each GPU."""
    fields = list(dict.fromkeys(field for gpu in history.gpus for field in gpu.fields))
    host = history.host
    count = max(1, len(fields) + len(host))
    figure = _new_figure((9.0, 0.8 + 2.0 * count))
    charts = iter(figure.subplots(count, 1, sharex=True, squeeze=False)[:, 0])
    times: Any = history.times

    def draw(chart: Any, values: list[float | None], label: str | None) -> None:
        # Absent readings become gaps in the line.
        chart.plot(
            times, [float("nan") if value is None else value for value in values], label=label
        )

    for field in fields:
        chart = next(charts)
        chart.set_title(field, loc="left", fontsize="small")
        for gpu in history.gpus:
            if field in gpu.fields:
                draw(chart, gpu[field].values, f"GPU {gpu.index}")
        chart.legend(fontsize="small")
    for field, series in host.items():
        chart = next(charts)
        chart.set_title(field, loc="left", fontsize="small")
        draw(chart, series.values, None)
    figure.axes[-1].tick_params(axis="x", rotation=20)
    return figure


def _new_figure(size: tuple[float, float]) -> Any:
    """Return an empty figure that notebooks display and that `show()` of pyplot opens."""
    return import_library("matplotlib.pyplot", "plot()").figure(figsize=size, layout="constrained")
