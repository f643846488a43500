"""The names of the metrics in all trackers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpumon._cost import Cost

#: The prefix of an epoch's metrics.
EPOCH = "gpu/"
#: The prefix of the whole run's metrics.
RUN = "gpu/run/"


def metrics_of(cost: Cost, prefix: str = EPOCH) -> dict[str, float]:
    """Return a cost as a flat dictionary of metrics. Unknown numbers are left out.

    >>> known = {"duration_s": 2.0, "gpu_s": 1.5, "peak_memory_bytes": None}
    >>> known["energy_joules"] = {"estimate": 600.0}
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
