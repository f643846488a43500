"""Results as text, as rows of tables, and as HTML. The HTML inherits text color and font, so it
suits light and dark notebook themes.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from gpumon._limits import LIMIT_LABELS
from gpumon._snapshot import is_json
from gpumon._text import (
    DASH,
    escape_controls,
    escape_unencodable,
    format_bytes,
    format_joules,
    format_seconds,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from gpumon._cost import Cost
    from gpumon._history import History
    from gpumon._snapshot import Snapshot

Row = dict[str, Any]

#: The style of a line of HTML.
SMALL = "font-size:smaller;opacity:0.75"


def cost_line(cost: Cost) -> str:
    """Return the cost in one line.

    For example: `12.4 s, GPU 9.80 s, peak 61.0 GiB, 6.10 kJ, host-bound 62 %`
    """
    return ", ".join(cost_parts(cost))


def cost_parts(cost: Mapping[str, Any]) -> list[str]:
    """Return the known parts of the cost: duration, GPU time, peak memory, energy, and the first
    cause that limited the work.
    """
    parts = [format_seconds(cost["duration_s"])]
    if not cost["gpus"]:
        return [
            *parts,
            f"GPU not measured: {escape_controls(cost['lost'][0])}"
            if cost["lost"]
            else "no GPU used",
        ]
    if cost["gpu_s"] is not None:
        parts.append(f"GPU {format_seconds(cost['gpu_s'])}")
    if cost["peak_memory_bytes"] is not None:
        parts.append(f"peak {format_bytes(cost['peak_memory_bytes'])}")
    if cost["energy_joules"] is not None:
        parts.append(energy_text(cost["energy_joules"], cost["shared"]))
    return parts + share_texts(cost.get("limits"))[:1]


def energy_text(energy: Mapping[str, float], shared: bool) -> str:
    """Return an energy as text; for shared GPUs, an estimate with a range: `~450 J (0.00 J to 900
    J, shared)`.
    """
    estimate = format_joules(energy["estimate"])
    return (
        f"~{estimate} ({format_joules(energy['least'])} to {format_joules(energy['most'])}, shared)"
        if shared
        else estimate
    )


def share_texts(limits: Mapping[str, Any] | None) -> list[str]:
    """Return each cause with its share, the largest first: `host-bound 62 %`."""
    return [
        f"{LIMIT_LABELS.get(one['cause'], one['cause']).lower()} {one['percent']:.0f} %"
        for one in (limits["shares"] if limits else ())
    ]


def limit_lines(limits: Mapping[str, Any] | None) -> list[str]:
    """Return a line with the shares of all causes, and one with the evidence and the advice."""
    if not limits:
        return []
    advice = " ".join(text for text in (limits["text"], limits["advice"]) if text)
    return [f"Limited by: {', '.join(share_texts(limits))}", *([advice] if advice else [])]


#: Columns that have the same name as their JSON key.
PLAIN = (
    "index", "uuid", "name", "held_s", "gpu_s", "peak_memory_bytes", "memory_change_bytes",
    "shared", "pcie_rx_bytes", "pcie_tx_bytes", "nvlink_rx_bytes", "nvlink_tx_bytes",
)  # fmt: skip
#: JSON keys whose values become several columns, and the names of the parts of each value.
PARTS = {
    "sm_percent": ("mean", "peak"),
    "tensor_percent": ("mean", "peak"),
    "dram_percent": ("mean", "peak"),
    "energy_joules": ("estimate", "least", "most"),
}
#: The column with the share of each cause that limited the GPU.
SHARES = {cause: f"limits_{cause}_percent" for cause in LIMIT_LABELS}
COST_COLUMNS = (
    "measurement", "duration_s", *PLAIN,
    *(f"{key}_{part}" for key, parts in PARTS.items() for part in parts),
    *SHARES.values(),
)  # fmt: skip


def cost_rows(cost: Mapping[str, Any]) -> list[Row]:
    """Return a row with `COST_COLUMNS` for each GPU that was used."""
    return [
        {
            "measurement": cost["name"],
            "duration_s": cost["duration_s"],
            **{key: gpu[key] for key in PLAIN},
            **{
                f"{key}_{part}": gpu[key] and gpu[key][part]
                for key, parts in PARTS.items()
                for part in parts
            },
            **_share_columns(gpu.get("limits")),
        }
        for gpu in cost["gpus"]
    ]


def _share_columns(limits: Mapping[str, Any] | None) -> Row:
    """Return the share of each cause; None for a cause with less than 1 %, which is not listed."""
    shares = {one["cause"]: one["percent"] for one in limits["shares"]} if limits else {}
    return {column: shares.get(cause) for cause, column in SHARES.items()}


def snapshot_rows(snapshot: Snapshot) -> list[Row]:
    """Return a row for each GPU, with the columns of `gpumon --csv`: field IDs with `_` instead of
    `.`.
    """
    groups = [
        "utilization", "activity", "memory", "temperature", "power", "clocks", "performance_state",
        "fan_percent", "pcie", "nvlink",
    ]  # fmt: skip
    rows: list[Row] = []
    for gpu in snapshot.gpus:
        readings = {key: value for key, value in gpu.to_dict().items() if key in groups}
        rows.append(
            {
                "time": snapshot.at,
                "index": gpu.index,
                "uuid": gpu.uuid,
                "name": gpu.name,
                **_flatten_row(readings),
                # A server of an older version sends no limits.
                **(
                    {column: gpu[f"limits.{cause}_percent"] for cause, column in SHARES.items()}
                    if "limits" in gpu.to_dict()
                    else {}
                ),
            }
        )
    return rows


def _flatten_row(json: Mapping[str, Any], prefix: str = "") -> Row:
    row: Row = {}
    for key, value in json.items():
        name = f"{prefix}{key}"
        if not is_json(value):
            row[name] = value
        elif "absent" in value:
            row[name] = None
        elif "value" in value:
            row[name] = value["value"]
        else:
            row.update(_flatten_row(value, f"{name}_"))
    return row


def history_rows(history: History) -> list[Row]:
    """Return a row for each time and GPU, including the host's fields. Without GPUs, return a row
    of host fields for each time.
    """
    host = {field.replace(".", "_"): series.values for field, series in history.host.items()}
    gpus = [
        (
            {"gpu": gpu.index, "name": gpu.name},
            {field.replace(".", "_"): gpu[field].values for field in gpu.fields},
        )
        for gpu in history.gpus
        if gpu.fields
    ]
    sources: list[tuple[Row, dict[str, list[float | None]]]] = [
        (who, {**own, **host}) for who, own in gpus
    ] or [({}, host)]
    return [
        {"time": at, **who, **{column: values[number] for column, values in columns.items()}}
        for number, at in enumerate(history.times)
        for who, columns in sources
    ]


#: The columns of a snapshot's table.
HEADINGS = ("GPU", "Name", "Utilization", "Memory", "Power", "Temperature")


def snapshot_cells(snapshot: Snapshot) -> list[tuple[str, ...]]:
    """Return the rows of a small table, without its header."""

    def format_with_unit(value: float | None, unit: str) -> str:
        return DASH if value is None else f"{value:.0f} {unit}"

    rows: list[tuple[str, ...]] = []
    for gpu in snapshot.gpus:
        used, total = gpu.memory_used_bytes, gpu.memory_total_bytes
        memory = DASH if used is None else format_bytes(used)
        if total is not None:
            memory += f" / {format_bytes(total)}"
        rows.append(
            (
                str(gpu.index),
                escape_controls(gpu.name or DASH),
                format_with_unit(gpu.utilization_percent, "%"),
                memory,
                format_with_unit(gpu.power_watts, "W"),
                format_with_unit(gpu.temperature_celsius, "°C"),
            )
        )
    return rows


def snapshot_notes(snapshot: Snapshot) -> list[str]:
    """Return the sentences that are shown below the table: conditions, and the processes with GPU
    memory.
    """
    notes: list[str] = ["simulated"] if snapshot.is_simulated else []
    for gpu in snapshot.gpus:
        notes += [f"GPU {gpu.index}: {escape_controls(text)}" for text in gpu.conditions]
        holders = sorted(gpu.processes, key=lambda process: process.memory_bytes or 0, reverse=True)
        for process in holders[:3]:
            size = DASH if process.memory_bytes is None else format_bytes(process.memory_bytes)
            user = f" of {process.user}" if process.user else ""
            holder = escape_controls(f"{process.name or 'process'}{user}")
            notes.append(f"GPU {gpu.index}: {holder} (PID {process.pid}) holds {size}")
        if len(holders) > 3:
            notes.append(f"GPU {gpu.index}: {len(holders) - 3} more processes")
        unlisted = gpu.to_dict().get("unlisted_memory_bytes")
        if unlisted is not None:
            size = format_bytes(unlisted)
            notes.append(
                f"GPU {gpu.index}: processes of other namespaces are not visible: {size} in use"
            )
    return notes


def snapshot_text(snapshot: Snapshot) -> str:
    """Return a small table and its notes as text."""
    rows = [
        HEADINGS,
        *(tuple(escape_unencodable(cell) for cell in row) for row in snapshot_cells(snapshot)),
    ]
    widths = [max(len(row[column]) for row in rows) for column in range(len(HEADINGS))]
    # The column of names is aligned to the left, columns of numbers to the right.
    lines = [
        "  ".join(
            cell.ljust(width) if at == 1 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths))
        )
        for row in rows
    ]
    return "\n".join(
        [
            *(line.rstrip() for line in lines),
            *(escape_unencodable(note) for note in snapshot_notes(snapshot)),
        ]
    )


def spread_text(spread: Mapping[str, float] | None) -> str:
    """Return a mean and a peak in percent as text."""
    return DASH if spread is None else f"{spread['mean']:.0f} % (peak {spread['peak']:.0f})"


def line_html(text: str) -> str:
    """Return a line in small, pale text."""
    return f'<div class="gpumon" style="{SMALL}">{escape(text)}</div>'


def cost_html(cost: Mapping[str, Any]) -> str:
    """Return a summary in one line, a table of the GPUs, what limited the work, and notes about
    missing numbers.
    """
    line = ", ".join(cost_parts(cost))
    name = f"<b>{escape(cost['name'])}</b>: " if cost["name"] else ""
    parts = [f"<div>{name}{escape(line)}</div>"]
    if cost["gpus"]:
        headings = ("GPU", "Name", "GPU time", "SM active", "Peak memory", "Energy", "Limited by")
        parts.append(_format_table(headings, [_gpu_cells(gpu) for gpu in cost["gpus"]]))
    # If the cost lists no GPUs, the summary already contains the first reason for missing numbers,
    # so this reason is not repeated.
    lost = cost["lost"] if cost["gpus"] else cost["lost"][1:]
    parts.append(_format_notes([*limit_lines(cost.get("limits")), *lost]))
    return f'<div class="gpumon">{"".join(parts)}</div>'


def _gpu_cells(gpu: Mapping[str, Any]) -> tuple[str, ...]:
    return (
        str(gpu["index"]),
        gpu["name"] or DASH,
        DASH if gpu["gpu_s"] is None else format_seconds(gpu["gpu_s"]),
        spread_text(gpu["sm_percent"]),
        DASH if gpu["peak_memory_bytes"] is None else format_bytes(gpu["peak_memory_bytes"]),
        DASH if gpu["energy_joules"] is None else energy_text(gpu["energy_joules"], gpu["shared"]),
        next(iter(share_texts(gpu.get("limits"))), DASH),
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
