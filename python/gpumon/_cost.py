"""The cost of a measurement: the program's JSON, and classes for its parts."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Optional, TypedDict

from gpumon._text import escape_unencodable


class Energy(NamedTuple):
    """The energy of the GPUs that were used, in joules.

    If no other process used the GPUs, all three numbers are the same. Otherwise the energy of the
    measured code is between `least` and `most`.
    """

    least: float
    most: float
    estimate: float


class Spread(NamedTuple):
    """The mean over the whole measurement and the highest single sample, in percent."""

    mean: float
    peak: float


class _EncodableRepr:
    """Gives a data class its usual repr, with escapes for characters that cannot be encoded."""

    def __repr__(self) -> str:
        values: dict[str, Any] = vars(self)
        return escape_unencodable(
            f"{type(self).__name__}("
            f"{', '.join(f'{name}={value!r}' for name, value in values.items())})"
        )


@dataclass(frozen=True, repr=False)
class Condition(_EncodableRepr):
    """A condition of a GPU during the measurement, such as a power cap."""

    #: The kind of condition, for example ``throttled``.
    kind: str
    #: Start in milliseconds since 1970.
    from_ms: int
    #: End in milliseconds since 1970; None while the condition lasts.
    to_ms: Optional[int]
    #: A description in one sentence.
    text: str


class LimitShare(NamedTuple):
    """The share of a cause that limits the work of a GPU."""

    #: The name of the cause, for example ``host``.
    cause: str
    #: The share of the measured time, in percent.
    percent: float


@dataclass(frozen=True, repr=False)
class LimitSummary(_EncodableRepr):
    """The causes that limited a GPU during the measurement."""

    #: The causes with at least 1 % of the time, the largest first.
    shares: tuple[LimitShare, ...]
    #: The evidence for the first cause, as a sentence; empty if it is not known.
    text: str
    #: A sentence about what to try first; empty if there is nothing to improve.
    advice: str
    #: The numbers that decided, for example ``cpu_percent``.
    evidence: dict[str, float] = field(hash=False)


@dataclass(frozen=True, repr=False)
class GpuCost(_EncodableRepr):
    """The cost on one GPU. A number is None if the driver does not report it."""

    #: The index of the GPU in NVML.
    index: int
    uuid: Optional[str]
    name: Optional[str]
    #: Seconds during which a process of the measured process tree was on this GPU.
    held_s: float
    #: Seconds during which kernels of the measured processes ran.
    gpu_s: Optional[float]
    #: The share of multiprocessors that were busy, counting all processes on the GPU (GPM; Hopper
    #: and later).
    sm_percent: Optional[Spread]
    #: The activity of the tensor cores, counting all processes on the GPU (GPM; Hopper and later).
    tensor_percent: Optional[Spread]
    #: The used share of the device memory's bandwidth, counting all processes on the GPU (GPM;
    #: Hopper and later).
    dram_percent: Optional[Spread]
    #: Peak GPU memory of all measured processes together, in bytes.
    peak_memory_bytes: Optional[int]
    #: GPU memory of the measured processes at the end, minus that at the start, in bytes.
    memory_change_bytes: Optional[int]
    energy_joules: Optional[Energy]
    #: Whether other processes used the GPU at the same time.
    shared: bool
    #: The number of bytes that the GPU received over PCIe, counting all processes. The next fields
    #: are the bytes sent over PCIe, and the bytes received and sent over NVLink.
    pcie_rx_bytes: Optional[int]
    pcie_tx_bytes: Optional[int]
    nvlink_rx_bytes: Optional[int]
    nvlink_tx_bytes: Optional[int]
    conditions: tuple[Condition, ...] = ()
    #: The causes that limited the GPU, counting all processes; None if the measurement was shorter
    #: than a second.
    limits: Optional[LimitSummary] = None


class CellRun(TypedDict):
    """A run of a notebook cell, identified by values that the cell itself stores."""

    #: The CRC-32 of the source in UTF-8.
    source_crc32: int
    execution_count: Optional[int]
    #: The cell's ``metadata.execution["iopub.execute_input"]``, which not every program writes.
    started: Optional[str]


class StoredCost(TypedDict):
    """The cost that a notebook stores with a cell as `metadata.gpumon`, rounded so that diffs stay
    small.
    """

    version: int
    duration_s: float
    gpu_s: Optional[float]
    peak_memory_bytes: Optional[int]
    memory_change_bytes: Optional[int]
    energy_joules: Optional[float]
    shared: bool
    gpus: list[str]
    #: The run that the cost belongs to. If the cell's current values are the same, the cell has not
    #: run again.
    run: Optional[CellRun]


class Cost(TypedDict):
    """The return value of `Measurement.to_dict`: the JSON that ``gpumon run --json`` writes."""

    version: int
    name: Optional[str]
    #: Start in milliseconds since 1970 (UTC).
    started_ms: int
    ended_ms: int
    duration_s: float
    gpu_s: Optional[float]
    peak_memory_bytes: Optional[int]
    memory_change_bytes: Optional[int]
    energy_joules: Optional[dict[str, float]]
    shared: bool
    limits: Optional[dict[str, Any]]
    gpus: list[dict[str, Any]]
    xids: list[dict[str, Any]]
    marks: list[dict[str, Any]]
    lost: list[str]


def parse_gpu_cost(json: dict[str, Any]) -> GpuCost:
    """Parse one element of the program's `gpus`. Unknown keys, which a newer program may send, are
    ignored.
    """
    known: dict[str, Any] = {one.name: json.get(one.name) for one in fields(GpuCost)}
    for key in ("sm_percent", "tensor_percent", "dram_percent"):
        if known[key] is not None:
            known[key] = Spread(known[key]["mean"], known[key]["peak"])
    known["energy_joules"] = parse_energy(known["energy_joules"])
    known["limits"] = parse_limits(known["limits"])
    known["conditions"] = tuple(_parse_condition(one) for one in known["conditions"] or ())
    return GpuCost(**known)


def parse_energy(json: dict[str, float] | None) -> Energy | None:
    """Parse an energy and its range."""
    return None if json is None else Energy(json["least"], json["most"], json["estimate"])


def parse_limits(json: dict[str, Any] | None) -> LimitSummary | None:
    """Parse the causes that limited a GPU."""
    if json is None:
        return None
    shares = tuple(LimitShare(one["cause"], one["percent"]) for one in json["shares"])
    return LimitSummary(shares, json["text"], json["advice"], json["evidence"])


def _parse_condition(json: dict[str, Any]) -> Condition:
    return Condition(json["kind"], json["from_ms"], json.get("to_ms"), json["text"])
