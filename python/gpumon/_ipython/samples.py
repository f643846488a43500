"""The readings during a cell."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, NamedTuple, Optional

from gpumon._errors import ProgramError
from gpumon._helper import current_helper
from gpumon._mail import Json
from gpumon._snapshot import find_reading

if TYPE_CHECKING:
    from types import TracebackType

INTERVAL_S = 0.5
#: The maximum number of samples of a cell. If there are more, every second one is dropped, and new
#: ones are taken half as often.
MOST = 240


class Sample(NamedTuple):
    """The readings of one GPU at one moment."""

    at_ms: float
    utilization_percent: Optional[float]
    memory_bytes: Optional[float]


class Samples:
    """Collects samples of all GPUs inside a ``with`` block."""

    def __init__(self) -> None:
        self._of_gpus: dict[int, list[Sample]] = {}
        self._came = 0
        self._every = 1
        self._helper = current_helper()
        self._number: int | None = None

    def __enter__(self) -> Samples:
        # If nothing can be read, the measurement of the same cell reports the reason.
        with contextlib.suppress(ProgramError):
            self._number = self._helper.subscribe(INTERVAL_S, self.add)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._number is not None:
            self._helper.unsubscribe(self._number)

    def by_gpu(self) -> dict[int, list[Sample]]:
        """Return the samples of each GPU, by index."""
        return {index: list(samples) for index, samples in sorted(self._of_gpus.items())}

    def add(self, sample: Json) -> None:
        """Store the readings that the charts show."""
        self._came += 1
        if self._came % self._every:
            return
        for gpu in sample["gpus"]:
            kept = Sample(
                sample["at_ms"],
                find_reading(gpu, "utilization.gpu_percent"),
                find_reading(gpu, "memory.used_bytes"),
            )
            self._of_gpus.setdefault(gpu["index"], []).append(kept)
        if max((len(samples) for samples in self._of_gpus.values()), default=0) > MOST:
            self._every *= 2
            for samples in self._of_gpus.values():
                del samples[::2]
