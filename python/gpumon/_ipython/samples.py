"""What was read while a cell ran."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple, Optional

from gpumon._errors import GpumonError
from gpumon._stream import Stream

if TYPE_CHECKING:
    from types import TracebackType

    from gpumon._snapshot import Snapshot

INTERVAL_S = 0.5
#: Of a cell that runs for long, every second one is dropped, and so on, so that at most so many are kept.
MOST = 240


class Sample(NamedTuple):
    """Readings of one GPU at a moment."""

    at_ms: float
    utilization_percent: Optional[float]
    memory_bytes: Optional[float]


class Samples:
    """Collects the samples of all GPUs between its beginning and its end.

    A thread takes them, since nothing else runs while a cell computes.
    """

    def __init__(self) -> None:
        self._of_gpus: dict[int, list[Sample]] = {}
        self._taken = 0
        self._every = 1
        self._is_over = False

    def __enter__(self) -> Samples:
        threading.Thread(target=self._collect, name="gpumon", daemon=True).start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # The thread is not waited for: it ends with the next sample.
        self._is_over = True

    def taken(self) -> dict[int, list[Sample]]:
        """Return the samples of each GPU, by index."""
        return {index: list(samples) for index, samples in sorted(self._of_gpus.items())}

    def _collect(self) -> None:
        # Where nothing can be read, the measurement beside this says why.
        try:
            with Stream(INTERVAL_S) as stream:
                for snapshot in stream:
                    if self._is_over:
                        return
                    self.take(snapshot)
        except GpumonError:
            pass

    def take(self, snapshot: Snapshot) -> None:
        """Keep the samples of one moment."""
        self._taken += 1
        if self._taken % self._every:
            return
        at_ms = snapshot.at.timestamp() * 1000
        for gpu in snapshot.gpus:
            samples = self._of_gpus.setdefault(gpu.index, [])
            samples.append(Sample(at_ms, gpu.utilization_percent, gpu.memory_used_bytes))
        if max((len(samples) for samples in self._of_gpus.values()), default=0) > MOST:
            self._every *= 2
            for samples in self._of_gpus.values():
                del samples[::2]
