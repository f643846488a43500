"""Past readings, as stored by a server."""

from __future__ import annotations

import datetime
import math
import reprlib
import time
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Union

from gpumon._arguments import check_seconds, check_text, check_whole_number
from gpumon._helper import current_helper
from gpumon._limits import MOST_POINTS
from gpumon._text import escape_unencodable, escape_controls

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas
    import polars

Json = dict[str, Any]
#: A time: seconds ago, a `datetime.timedelta` ago, or a `datetime.datetime`.
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
    """Return past readings of the server that runs on this machine.

    Args:
        fields: IDs from the catalog (``docs/reference/fields.md``), such as ``power.draw_watts`` or
            ``host.cpu.busy_percent``.
        since: the start: seconds ago, a timedelta ago, or a datetime. A datetime without a time
            zone is local.
        until: the end, in the same form as `since`; by default, the current time.
        points: the maximum number of points, from 1 to 5000. If the server has more readings, each
            point is a mean.

    Raises:
        ProgramError: the ``gpumon`` program is missing or does not answer.
        RequestError: no server is running (``gpumon serve``), or a field is unknown.
        TypeError: an argument has the wrong type.
        ValueError: a field, a time or the number of points is invalid, or the start is not before
            the end.
    """
    names = _check_field_ids(fields)
    now = time.time()
    begin_ms, end_ms = _to_milliseconds(since, "since", now), _to_milliseconds(until, "until", now)
    if begin_ms >= end_ms:
        raise ValueError(
            "`since` must be earlier than `until`: both are seconds ago, timedeltas or datetimes"
        )
    points = check_whole_number(points, "points", 1, MOST_POINTS)
    request = {"from_ms": begin_ms, "to_ms": end_ms, "metrics": ",".join(names), "points": points}
    return History(current_helper().send_request({"history": request})["history"])


class Series:
    """The values of one field at each time of the history. Absent readings are None."""

    def __init__(self, json: Json) -> None:
        #: The mean of the readings at each point; for counters and states, the last reading.
        self.values: list[float | None] = json["values"]
        #: The lowest reading of each point, if a point has several readings.
        self.min: list[float | None] | None = json.get("min")
        #: The highest reading of each point, if a point has several readings.
        self.max: list[float | None] | None = json.get("max")

    def __repr__(self) -> str:
        return f"<Series of {len(self.values)}>"


class GpuHistory:
    """The history of one GPU. For example, ``gpu["power.draw_watts"].values`` contains the power at
    each time of the history.
    """

    def __init__(self, json: Json) -> None:
        self._json = json
        #: The IDs of all fields in this history.
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
                f"this history has no field {field!r}, only {known}: request the field with "
                f"gpumon.history"
            ) from None

    def __repr__(self) -> str:
        return escape_unencodable(f"<GpuHistory {self.index} {escape_controls(self.name or '')}>")


class History:
    """The readings of a time range."""

    def __init__(self, json: Json) -> None:
        self._json = json

    @property
    def times(self) -> list[datetime.datetime]:
        """The start of each point, in the local time zone."""
        return [_to_local_time(at_ms) for at_ms in self._json["times_ms"]]

    @property
    def resolution_s(self) -> float:
        """The seconds from one point to the next."""
        return self._json["resolution_ms"] / 1000

    @property
    def oldest(self) -> datetime.datetime | None:
        """The time of the server's oldest reading."""
        oldest: float | None = self._json.get("oldest_ms")
        return None if oldest is None else _to_local_time(oldest)

    @property
    def gpus(self) -> list[GpuHistory]:
        """The GPUs, sorted by index."""
        return [GpuHistory(one) for one in self._json["gpus"]]

    @property
    def host(self) -> dict[str, Series]:
        """The fields of the host."""
        fields: Json = self._json.get("host") or {}
        return {field: Series(one) for field, one in fields.items()}

    @property
    def events(self) -> list[Json]:
        """Events in this range: conditions, Xids, marks and cells, as in the JSON of the API."""
        return self._json.get("events") or []

    def to_dict(self) -> Json:
        """Return the JSON of ``GET /api/v1/history``."""
        return self._json

    def to_pandas(self) -> pandas.DataFrame:
        """Return a `pandas.DataFrame` with a row for each time and GPU, and a column for each
        field.

        Raises:
            ImportError: pandas is not installed.
        """
        from gpumon._libraries import make_pandas_frame
        from gpumon._results import history_rows

        return make_pandas_frame(history_rows(self))

    def to_polars(self) -> polars.DataFrame:
        """Return a `polars.DataFrame` with a row for each time and GPU, and a column for each
        field.

        Raises:
            ImportError: polars is not installed.
        """
        from gpumon._libraries import make_polars_frame
        from gpumon._results import history_rows

        return make_polars_frame(history_rows(self))

    def plot(self) -> matplotlib.figure.Figure:
        """Return a figure with a chart for each field and a line for each GPU.

        Raises:
            ImportError: matplotlib is not installed.
        """
        from gpumon._libraries import plot_history

        return plot_history(self)

    def __repr__(self) -> str:
        count = len(self._json["times_ms"])
        return (
            f"<History of {len(self._json['gpus'])} GPUs, {count} points of {self.resolution_s:g} "
            f"s>"
        )


def _check_field_ids(fields: str | Iterable[str]) -> list[str]:
    what = "the ID of a field"
    if isinstance(fields, str):
        fields = [fields]
    elif isinstance(fields, bytes) or not isinstance(fields, Iterable):
        check_text(fields, what)
    names = [check_text(field, what).strip() for field in fields]
    if not names or not all(names):
        raise ValueError(
            "no field was requested: pass at least one ID, for example "
            "gpumon.history(['power.draw_watts'])"
        )
    return names


def _to_milliseconds(moment: Moment, name: str, now: float) -> int:
    """Return a time in milliseconds since 1970."""
    if isinstance(moment, datetime.datetime):
        try:
            at = moment.timestamp()
        except (OverflowError, OSError, ValueError):
            at = math.nan
    elif isinstance(moment, datetime.timedelta):
        at = now - moment.total_seconds()
    else:
        at = now - check_seconds(moment, name, " ago, a timedelta or a datetime")
    if not 0 <= at <= LAST_MOMENT_S:
        raise ValueError(
            f"{name}={reprlib.repr(moment)} is invalid: pass a time between 1970 and 9999"
        )
    return round(at * 1000)


def _to_local_time(at_ms: float) -> datetime.datetime:
    return datetime.datetime.fromtimestamp(at_ms / 1000).astimezone()
