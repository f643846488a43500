"""What something took of the GPUs: the JSON of the program, and its parts as objects."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, NamedTuple, Optional, TypedDict

from gpumon._text import encodable


class Energy(NamedTuple):
    """Energy in joules of the GPUs that were held.

    All three are the same where nobody else held them; else the measured code used between `least`
    and `most`.
    """

    least: float
    most: float
    estimate: float


class Spread(NamedTuple):
    """Mean over the time and peak of one sample, in percent."""

    mean: float
    peak: float


class _EncodableRepr:
    """Gives a data class its usual repr, in characters that the output can encode."""

    def __repr__(self) -> str:
        values: dict[str, Any] = vars(self)
        return encodable(
            f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in values.items())})"
        )


@dataclass(frozen=True, repr=False)
class Condition(_EncodableRepr):
    """What was the matter with a GPU meanwhile, such as a power cap."""

    #: The kind, as ``throttled``.
    kind: str
    #: Milliseconds since 1970.
    from_ms: int
    #: Milliseconds since 1970; None while it lasts.
    to_ms: Optional[int]
    #: A sentence.
    text: str


@dataclass(frozen=True, repr=False)
class GpuCost(_EncodableRepr):
    """What was taken of one GPU. A number is None where the driver does not tell it."""

    #: NVML's index.
    index: int
    uuid: Optional[str]
    name: Optional[str]
    #: Seconds in which a process of the measured tree held it.
    held_s: float
    #: Seconds in which kernels of these processes ran.
    gpu_s: Optional[float]
    #: Multiprocessors that had work, of all processes (GPM; Hopper and later).
    sm_percent: Optional[Spread]
    #: The same of the tensor cores.
    tensor_percent: Optional[Spread]
    #: The same of the bandwidth of device memory.
    dram_percent: Optional[Spread]
    #: The most bytes that these processes held at once.
    peak_memory_bytes: Optional[int]
    #: How many more bytes they held at the end than before.
    memory_change_bytes: Optional[int]
    energy_joules: Optional[Energy]
    #: Whether others held it at the same time.
    shared: bool
    #: Bytes over PCIe and NVLink, from the GPU's side, of all processes.
    pcie_rx_bytes: Optional[int]
    pcie_tx_bytes: Optional[int]
    nvlink_rx_bytes: Optional[int]
    nvlink_tx_bytes: Optional[int]
    conditions: tuple[Condition, ...] = ()


class CellRun(TypedDict):
    """A run of a notebook's cell, identified by what the cell itself records."""

    #: CRC-32 of the source in UTF-8.
    source_crc32: int
    execution_count: Optional[int]
    #: The cell's ``metadata.execution["iopub.execute_input"]``, which not every program writes.
    started: Optional[str]


class StoredCost(TypedDict):
    """What a notebook keeps of a cell as `metadata.gpumon`: rounded, so that diffs stay small."""

    version: int
    duration_s: float
    gpu_s: Optional[float]
    peak_memory_bytes: Optional[int]
    memory_change_bytes: Optional[int]
    energy_joules: Optional[float]
    shared: bool
    gpus: list[str]
    #: The run that this is the cost of. It is the last run if it equals the values of the cell.
    run: Optional[CellRun]


class Cost(TypedDict):
    """What `Measurement.to_dict` returns, the same as ``gpumon run --json`` writes."""

    version: int
    name: Optional[str]
    #: Milliseconds since 1970, UTC.
    started_ms: int
    ended_ms: int
    duration_s: float
    gpu_s: Optional[float]
    peak_memory_bytes: Optional[int]
    memory_change_bytes: Optional[int]
    energy_joules: Optional[dict[str, float]]
    shared: bool
    gpus: list[dict[str, Any]]
    xids: list[dict[str, Any]]
    marks: list[dict[str, Any]]
    lost: list[str]


def gpu_cost(json: dict[str, Any]) -> GpuCost:
    """Return one element of `gpus`. Keys of a newer program are left out."""
    known: dict[str, Any] = {field.name: json.get(field.name) for field in fields(GpuCost)}
    for key in ("sm_percent", "tensor_percent", "dram_percent"):
        if known[key] is not None:
            known[key] = Spread(known[key]["mean"], known[key]["peak"])
    known["energy_joules"] = energy(known["energy_joules"])
    known["conditions"] = tuple(_condition(one) for one in known["conditions"] or ())
    return GpuCost(**known)


def energy(json: dict[str, float] | None) -> Energy | None:
    """Return an energy with its range."""
    return None if json is None else Energy(json["least"], json["most"], json["estimate"])


def _condition(json: dict[str, Any]) -> Condition:
    return Condition(json["kind"], json["from_ms"], json.get("to_ms"), json["text"])
