"""The readings of one moment."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

from gpumon._arguments import text
from gpumon._text import encodable, escaped

if TYPE_CHECKING:
    import pandas
    import polars
    from typing_extensions import TypeGuard

Json = dict[str, Any]


def reading(holder: Json, field: str) -> float | None:
    """Return the number at a path such as ``power.draw_watts``; None where it is absent.

    Raises:
        KeyError: there is no such field.
    """
    found = _at(holder, field)
    if is_json(found):
        # One that is older than its sample has its own time.
        found = found.get("value")
    return found if isinstance(found, (int, float)) and not isinstance(found, bool) else None


def absence(holder: Json, field: str) -> str | None:
    """Return why the number at a path is absent, as ``not_supported``; None where it is there."""
    found = _at(holder, field)
    return found.get("absent") if is_json(found) else None


def is_json(found: object) -> TypeGuard[Json]:
    """Return whether it is an object of JSON."""
    return isinstance(found, dict)


def _at(holder: Json, field: str) -> object:
    found: object = holder
    for key in text(field, "the ID of a field").split("."):
        if not is_json(found) or key not in found:
            raise KeyError(
                f"{field!r} is no field; the reference page of fields lists the IDs, as 'power.draw_watts'"
            )
        found = found[key]
        # Where a group is absent, so are its fields.
        if is_json(found) and "absent" in found:
            return found
    return found


class Process:
    """A process that holds memory of a GPU."""

    def __init__(self, json: Json) -> None:
        self._json = json

    @property
    def pid(self) -> int:
        return self._json["pid"]

    @property
    def name(self) -> str | None:
        """The program or script; None where ``/proc`` does not tell it."""
        return _text(self._json.get("name"))

    @property
    def user(self) -> str | None:
        return _text(self._json.get("user"))

    @property
    def memory_bytes(self) -> float | None:
        """Bytes of GPU memory, as the driver reports them."""
        return reading(self._json, "memory_bytes")

    @property
    def sm_percent(self) -> float | None:
        """Time in which its kernels ran, in percent of the last second."""
        return reading(self._json, "sm_percent")

    def to_dict(self) -> Json:
        """Return it as JSON has it, with its owner: notebook, batch job, pod, container."""
        return self._json

    def __repr__(self) -> str:
        return encodable(f"<Process {self.pid} {escaped(self.name or '')}>")


class Gpu:
    """The readings of one GPU. ``gpu["power.draw_watts"]`` reads any field of the catalogue, as
    ``docs/reference/fields.md``.
    """

    def __init__(self, board: Json, sample: Json) -> None:
        self._board = board
        self._sample = sample

    @property
    def index(self) -> int:
        """NVML's index."""
        return self._sample["index"]

    @property
    def uuid(self) -> str | None:
        return _text(self._sample.get("uuid"))

    @property
    def name(self) -> str | None:
        return _text(self._board.get("name"))

    @property
    def utilization_percent(self) -> float | None:
        """Time in which at least one kernel ran (NVML)."""
        return self["utilization.gpu_percent"]

    @property
    def memory_used_bytes(self) -> float | None:
        """Bytes that processes hold (NVML)."""
        return self["memory.used_bytes"]

    @property
    def memory_total_bytes(self) -> float | None:
        """Bytes of the device, all of them (NVML)."""
        return self["memory.total_bytes"]

    @property
    def power_watts(self) -> float | None:
        """Power draw of the board in watts, averaged over one second on most boards (NVML)."""
        return self["power.draw_watts"]

    @property
    def temperature_celsius(self) -> float | None:
        """Temperature of the GPU in whole degrees Celsius (NVML)."""
        return self["temperature.gpu_celsius"]

    @property
    def health(self) -> str:
        """``ok``, or what is the matter with its readings, as ``lost``."""
        return self._sample["health"]["state"]

    @property
    def conditions(self) -> list[str]:
        """Sentences about what is the matter with it now, as a power cap."""
        return [one["text"] for one in self._sample.get("conditions", [])]

    @property
    def processes(self) -> list[Process]:
        """Who holds its memory."""
        return [Process(one) for one in self._sample.get("processes", [])]

    def __getitem__(self, field: str) -> float | None:
        return reading(self._sample, field)

    def absence(self, field: str) -> str | None:
        """Return why a field is None, as ``not_supported``; None where it is known."""
        return absence(self._sample, field)

    def to_dict(self) -> Json:
        """Return all its readings as JSON has them."""
        return self._sample

    def __repr__(self) -> str:
        return encodable(f"<Gpu {self.index} {escaped(self.name or '')}>")


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
        """When they were read, in the local time zone."""
        return datetime.datetime.fromtimestamp(self._sample["at_ms"] / 1000).astimezone()

    @property
    def gpus(self) -> list[Gpu]:
        """The GPUs, by index."""
        boards = {board["index"]: board for board in self._inventory.get("gpus", [])}
        return [Gpu(boards.get(gpu["index"], {}), gpu) for gpu in self._sample["gpus"]]

    @property
    def is_simulated(self) -> bool:
        """Whether no real GPU was read."""
        return self._inventory.get("platform", {}).get("source") == "simulated"

    def __getitem__(self, field: str) -> float | None:
        """Return a reading of the host, as ``snapshot["host.cpu.busy_percent"]``."""
        return reading(self._sample, field)

    def to_dict(self) -> Json:
        """Return ``inventory`` and ``sample`` as ``gpumon --json`` prints them."""
        return {"inventory": self._inventory, "sample": self._sample}

    def to_pandas(self) -> pandas.DataFrame:
        """Return a `pandas.DataFrame` with a row for each GPU and a column for each reading, named
        as in CSV.

        Raises:
            ImportError: pandas is not installed.
        """
        from gpumon._frames import pandas_of
        from gpumon._table import snapshot_rows

        return pandas_of(snapshot_rows(self))

    def to_polars(self) -> polars.DataFrame:
        """Return a `polars.DataFrame` with a row for each GPU and a column for each reading, named
        as in CSV.

        Raises:
            ImportError: polars is not installed.
        """
        from gpumon._frames import polars_of
        from gpumon._table import snapshot_rows

        return polars_of(snapshot_rows(self))

    def __str__(self) -> str:
        from gpumon._table import snapshot_text

        return snapshot_text(self)

    def __repr__(self) -> str:
        count = len(self.gpus)
        simulated = ", simulated" if self.is_simulated else ""
        return f"<Snapshot of {count} {'GPU' if count == 1 else 'GPUs'}, {self.at:%H:%M:%S}{simulated}>"

    def _repr_html_(self) -> str:
        from gpumon._html import snapshot_html

        return snapshot_html(self)


def _text(found: Any) -> str | None:
    return found if isinstance(found, str) else None
