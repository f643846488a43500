"""The names of the metrics, for all trackers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpumon._cost import Cost

#: What an epoch took.
EPOCH = "gpu/"
#: What the whole run took.
RUN = "gpu/run/"


def metrics_of(cost: Cost, prefix: str = EPOCH) -> dict[str, float]:
    """Return a cost as metrics: a flat dictionary of numbers. What is not known has no entry.

    >>> known = {"duration_s": 2.0, "gpu_s": 1.5, "peak_memory_bytes": None, "energy_joules": {"estimate": 600.0}}
    >>> metrics_of(known)
    {'gpu/duration_seconds': 2.0, 'gpu/time_seconds': 1.5, 'gpu/energy_joules': 600.0}
    """
    energy = cost["energy_joules"]
    metrics = {
        "duration_seconds": cost["duration_s"],
        "time_seconds": cost["gpu_s"],
        "peak_memory_bytes": cost["peak_memory_bytes"],
        "energy_joules": None if energy is None else energy["estimate"],
    }
    return {f"{prefix}{name}": float(value) for name, value in metrics.items() if value is not None}
