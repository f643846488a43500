"""The readings at one point in time."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from gpumon._arguments import check_text
from gpumon._text import escape_unencodable, escape_controls

if TYPE_CHECKING:
    import pandas
    import polars
    from typing_extensions import TypeGuard

Json = dict[str, Any]


def find_reading(holder: Json, field: str) -> float | None:
    """Return the number at a path such as ``power.draw_watts``; None if the reading is absent.

    Raises:
        KeyError: there is no such field.
    """
    found = _find_field(holder, field)
    if is_json(found):
        # A reading that is older than its sample is an object that contains a `value` and the time
        # of the reading.
        found = found.get("value")
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def is_json(found: object) -> TypeGuard[Json]:
    """Return whether the value is a JSON object."""
    return isinstance(found, dict)


def _find_field(holder: Json, field: str) -> object:
    found: object = holder
    for key in check_text(field, "the ID of a field").split("."):
        # A group can be older than its sample, like a reading.
        if is_json(found) and is_json(found.get("value")):
            found = found["value"]
        if not is_json(found) or key not in found:
            raise KeyError(
                f"there is no field {field!r}: the reference page of fields lists the IDs, for "
                f"example 'power.draw_watts'"
            )
        found = found[key]
        # If a group is absent, all of its fields are absent.
        if is_json(found) and "absent" in found:
            return found
    return found


class Process:
    """A process that uses GPU memory."""

    def __init__(self, json: Json) -> None:
        self._json = json

    @property
    def pid(self) -> int:
        return self._json["pid"]

    @property
    def name(self) -> str | None:
        """The name of the program or script; None if ``/proc`` does not show it."""
        return _text_or_none(self._json.get("name"))

    @property
    def user(self) -> str | None:
        return _text_or_none(self._json.get("user"))

    @property
    def memory_bytes(self) -> float | None:
        """GPU memory in bytes, as reported by the driver."""
        return find_reading(self._json, "memory_bytes")

    @property
    def sm_percent(self) -> float | None:
        """Time during which the kernels of this process ran, in percent of the last second."""
        return find_reading(self._json, "sm_percent")

    def to_dict(self) -> Json:
        """Return the process as in JSON, with its owner: notebook, batch job, pod or container."""
        return self._json

    def __repr__(self) -> str:
        return escape_unencodable(f"<Process {self.pid} {escape_controls(self.name or '')}>")


class Gpu:
    """The readings of one GPU. ``gpu["power.draw_watts"]`` returns any field of the catalog in
    ``docs/reference/fields.md``.
    """

    def __init__(self, board: Json, sample: Json) -> None:
        self._board = board
        self._sample = sample

    @property
    def index(self) -> int:
        """The index of the GPU in NVML."""
        return self._sample["index"]

    @property
    def uuid(self) -> str | None:
        return _text_or_none(self._sample.get("uuid"))

    @property
    def name(self) -> str | None:
        return _text_or_none(self._board.get("name"))

    @property
    def utilization_percent(self) -> float | None:
        """Time during which at least one kernel ran, in percent (NVML)."""
        return self["utilization.gpu_percent"]

    @property
    def memory_used_bytes(self) -> float | None:
        """Used device memory in bytes (NVML)."""
        return self["memory.used_bytes"]

    @property
    def memory_total_bytes(self) -> float | None:
        """Total device memory in bytes (NVML)."""
        return self["memory.total_bytes"]

    @property
    def power_watts(self) -> float | None:
        """Power draw of the board in watts, averaged over one second on most boards (NVML)."""
        return self["power.draw_watts"]

    @property
    def temperature_celsius(self) -> float | None:
        """The temperature of the GPU, in whole degrees Celsius (NVML)."""
        return self["temperature.gpu_celsius"]

    @property
    def health(self) -> str:
        """``ok``, or the reason why the GPU cannot be read normally, such as ``lost``."""
        return self._sample["health"]["state"]

    @property
    def conditions(self) -> list[str]:
        """Sentences that describe the current conditions, such as a power cap."""
        return [one["text"] for one in self._sample.get("conditions", [])]

    @property
    def processes(self) -> list[Process]:
        """The processes that use memory of this GPU."""
        return [Process(one) for one in self._sample.get("processes", [])]

    def __getitem__(self, field: str) -> float | None:
        return find_reading(self._sample, field)

    def absence(self, field: str) -> str | None:
        """Return why a field is None, such as ``not_supported``; None if the field has a value."""
        found = _find_field(self._sample, field)
        return found.get("absent") if is_json(found) else None

    def to_dict(self) -> Json:
        """Return all readings of the GPU as in JSON."""
        return self._sample

    def __repr__(self) -> str:
        return escape_unencodable(f"<Gpu {self.index} {escape_controls(self.name or '')}>")


class Snapshot:
    """The readings of all GPUs and of the host at one moment.

    >>> now = gpumon.snapshot()
    >>> gpu = now.gpus[0]
    >>> gpu["power.draw_watts"] == gpu.power_watts
    True
    """

    def __init__(self, inventory: Json, sample: Json) -> None:
        self._inventory = inventory
        self._sample = sample

    @property
    def at(self) -> datetime.datetime:
        """The time of the readings, in the local time zone."""
        return datetime.datetime.fromtimestamp(self._sample["at_ms"] / 1000).astimezone()

    @property
    def gpus(self) -> list[Gpu]:
        """The GPUs, sorted by index."""
        boards = {board["index"]: board for board in self._inventory.get("gpus", [])}
        return [Gpu(boards.get(gpu["index"], {}), gpu) for gpu in self._sample["gpus"]]

    @property
    def is_simulated(self) -> bool:
        """Whether the GPUs are simulated."""
        return self._inventory.get("platform", {}).get("source") == "simulated"

    def __getitem__(self, field: str) -> float | None:
        """Return a reading of the host, such as ``snapshot["host.cpu.busy_percent"]``."""
        return find_reading(self._sample, field)

    def to_dict(self) -> Json:
        """Return a dictionary with the ``inventory`` and the ``sample`` that ``gpumon --json``
        prints.
        """
        return {"inventory": self._inventory, "sample": self._sample}

    def to_pandas(self) -> pandas.DataFrame:
        """Return a `pandas.DataFrame` with a row for each GPU and a column for each reading, with
        the names of the CSV format.

        Raises:
            ImportError: pandas is not installed.
        """
        from gpumon._libraries import make_pandas_frame
        from gpumon._results import snapshot_rows

        return make_pandas_frame(snapshot_rows(self))

    def to_polars(self) -> polars.DataFrame:
        """Return a `polars.DataFrame` with a row for each GPU and a column for each reading, with
        the names of the CSV format.

        Raises:
            ImportError: polars is not installed.
        """
        from gpumon._libraries import make_polars_frame
        from gpumon._results import snapshot_rows

        return make_polars_frame(snapshot_rows(self))

    def __str__(self) -> str:
        from gpumon._results import snapshot_text

        return snapshot_text(self)

    def __repr__(self) -> str:
        count = len(self.gpus)
        simulated = ", simulated" if self.is_simulated else ""
        return (
            f"<Snapshot of {count} {'GPU' if count == 1 else 'GPUs'}, "
            f"{self.at:%H:%M:%S}{simulated}>"
        )

    def _repr_html_(self) -> str:
        from gpumon._results import snapshot_html

        return snapshot_html(self)


def _text_or_none(found: Any) -> str | None:
    return found if isinstance(found, str) else None
