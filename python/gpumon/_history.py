"""The readings of the past, as a server keeps them."""

from __future__ import annotations

import datetime
import math
import reprlib
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Union

from gpumon._arguments import seconds, text, whole_number
from gpumon._helper import current
from gpumon._limits import MOST_POINTS
from gpumon._text import encodable, escaped

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas
    import polars

Json = dict[str, Any]
#: A moment, or how long ago it was: seconds, or a `datetime.timedelta`.
Moment = Union[float, datetime.timedelta, datetime.datetime]
#: The end of the year 9999, in seconds since 1970.
LAST_MOMENT_S = 253_402_300_799


def history(
    fields: str | Iterable[str],
    since: Moment = 600,
    until: Moment = 0,
    *,
    points: int = 600,
) -> History:
    """Return readings of the past from the server that runs on this machine.

    Args:
        fields: IDs of the catalogue (``docs/reference/fields.md``), as ``power.draw_watts`` or ``host.cpu.busy_percent``.
        since: how long ago it begins, as seconds or a timedelta, or when; a datetime without a time zone is local.
        until: the same of its end; by default, now.
        points: at most so many, from 1 to 5000. Where the server has more readings, each point has their mean.

    Raises:
        ProgramError: the ``gpumon`` program is missing or does not answer.
        RequestError: no server runs (``gpumon serve``), or a field is unknown.
        TypeError: an argument has the wrong type.
        ValueError: a field, a time or the number of points is invalid, or the start is not before the end.
    """
    names = _ids(fields)
    now = time.time()
    begin_ms, end_ms = _milliseconds(since, "since", now), _milliseconds(until, "until", now)
    if begin_ms >= end_ms:
        raise ValueError(
            "the history ends before it begins: `since` and `until` are seconds ago, or datetimes"
        )
    points = whole_number(points, "points", 1, MOST_POINTS)
    request = {"from_ms": begin_ms, "to_ms": end_ms, "metrics": ",".join(names), "points": points}
    return History(current().ask({"history": request})["history"])


class Series:
    """The values of one field at the times of its history; None where there was no reading."""

    def __init__(self, json: Json) -> None:
        #: Means of each point's time; of counters and states the last value.
        self.values: list[float | None] = json["values"]
        #: The lowest reading of each point, where a point has several.
        self.min: list[float | None] | None = json.get("min")
        #: The highest reading of each point, where a point has several.
        self.max: list[float | None] | None = json.get("max")

    def __repr__(self) -> str:
        return f"<Series of {len(self.values)}>"


class GpuHistory:
    """The history of one GPU: ``gpu["power.draw_watts"].values``."""

    def __init__(self, json: Json) -> None:
        self._json = json
        #: The fields that the server has of it.
        self.fields: list[str] = sorted(json["metrics"])

    @property
    def index(self) -> int:
        return self._json["index"]

    @property
    def uuid(self) -> str | None:
        return self._json["uuid"]

    @property
    def name(self) -> str | None:
        return self._json["name"]

    def __getitem__(self, field: str) -> Series:
        try:
            return Series(self._json["metrics"][field])
        except KeyError:
            known = ", ".join(self.fields) or "none"
            raise KeyError(
                f"{field!r} is no field of this history, which has {known}: ask for it in gpumon.history"
            ) from None

    def __repr__(self) -> str:
        return encodable(f"<GpuHistory {self.index} {escaped(self.name or '')}>")


class History:
    """Readings of a span of the past."""

    def __init__(self, json: Json) -> None:
        self._json = json

    @property
    def times(self) -> list[datetime.datetime]:
        """When each point begins, in the local time zone."""
        return [_local(at_ms) for at_ms in self._json["times_ms"]]

    @property
    def resolution_s(self) -> float:
        """Seconds from one point to the next."""
        return self._json["resolution_ms"] / 1000

    @property
    def oldest(self) -> datetime.datetime | None:
        """Since when the server has a history."""
        oldest: float | None = self._json.get("oldest_ms")
        return None if oldest is None else _local(oldest)

    @property
    def gpus(self) -> list[GpuHistory]:
        """The GPUs, by index."""
        return [GpuHistory(one) for one in self._json["gpus"]]

    @property
    def host(self) -> dict[str, Series]:
        """The fields of the host."""
        fields: Json = self._json.get("host") or {}
        return {field: Series(one) for field, one in fields.items()}

    @property
    def events(self) -> list[Json]:
        """What happened meanwhile: conditions, Xids, marks, cells, as JSON of the API has them."""
        return self._json.get("events") or []

    def to_dict(self) -> Json:
        """Return what ``GET /api/v1/history`` answers."""
        return self._json

    def to_pandas(self) -> pandas.DataFrame:
        """Return a `pandas.DataFrame` with a row for each time and GPU, and a column for each
        field.

        Raises:
            ImportError: pandas is not installed.
        """
        from gpumon._frames import pandas_of
        from gpumon._table import history_rows

        return pandas_of(history_rows(self))

    def to_polars(self) -> polars.DataFrame:
        """Return a `polars.DataFrame` with a row for each time and GPU, and a column for each
        field.

        Raises:
            ImportError: polars is not installed.
        """
        from gpumon._frames import polars_of
        from gpumon._table import history_rows

        return polars_of(history_rows(self))

    def plot(self) -> matplotlib.figure.Figure:
        """Return a figure with a chart for each field and a line for each GPU.

        Raises:
            ImportError: matplotlib is not installed.
        """
        from gpumon._plots import plot_history

        return plot_history(self)

    def __repr__(self) -> str:
        count = len(self._json["times_ms"])
        return f"<History of {len(self._json['gpus'])} GPUs, {count} points of {self.resolution_s:g} s>"


def _ids(fields: str | Iterable[str]) -> list[str]:
    what = "the ID of a field"
    if isinstance(fields, str):
        fields = [fields]
    elif isinstance(fields, bytes) or not isinstance(fields, Iterable):
        text(fields, what)
    names = [text(field, what).strip() for field in fields]
    if not names or not all(names):
        raise ValueError(
            "no field was requested: name at least one, for example gpumon.history(['power.draw_watts'])"
        )
    return names


def _milliseconds(moment: Moment, name: str, now: float) -> int:
    """Return a moment in milliseconds since 1970."""
    if isinstance(moment, datetime.datetime):
        try:
            at = moment.timestamp()
        except (OverflowError, OSError, ValueError):
            at = math.nan
    elif isinstance(moment, datetime.timedelta):
        at = now - moment.total_seconds()
    else:
        at = now - seconds(moment, name, " ago, a timedelta or a datetime")
    if not 0 <= at <= LAST_MOMENT_S:
        raise ValueError(
            f"{name}={reprlib.repr(moment)} is not possible: pass a time between 1970 and 9999"
        )
    return round(at * 1000)


def _local(at_ms: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at_ms / 1000).astimezone()
