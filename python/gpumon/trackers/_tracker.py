"""A run and its epochs, measured and logged: what all trackers share."""

from __future__ import annotations

import abc
import contextlib
from typing import TYPE_CHECKING

import gpumon
from gpumon.trackers._metrics import EPOCH, RUN, metrics_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import TracebackType

    from typing_extensions import Self

    from gpumon import Measurement


class Tracker(abc.ABC):
    """Measures a run and its epochs, and logs what they took of the GPUs.

    The last numbers of an epoch come from the driver a second or two after its end. Training does not wait for them: they
    are logged when the next epoch ends, at the step of the epoch that they are of, and those of the last with the run's.

    To log elsewhere, derive a class that has `log`.
    """

    def __init__(self) -> None:
        #: The metrics of the last run, once it has ended.
        self.totals: dict[str, float] = {}
        self._run: Measurement | None = None
        self._epoch: Measurement | None = None
        self._ended: tuple[int, Measurement] | None = None

    @abc.abstractmethod
    def log(self, metrics: dict[str, float], step: int | None) -> None:
        """Log the metrics of the epoch at this step, or of the whole run where it is `None`."""

    def start(self) -> Self:
        """Begin the run."""
        self._run = gpumon.measure("run").start()
        return self

    def start_epoch(self) -> None:
        """Begin an epoch."""
        self._epoch = gpumon.measure("epoch").start()

    def stop_epoch(self, step: int, is_logged_now: bool = False) -> None:
        """End the epoch, which is logged at this step; and log the one before.

        For those who cannot log at an earlier step, `is_logged_now` waits for its numbers.
        """
        if self._epoch is None:
            return
        measurement, self._epoch = self._epoch, None
        measurement.stop()
        self._log_ended()
        self._ended = step, measurement
        if is_logged_now:
            self._log_ended()

    def stop(self) -> None:
        """End the run, and log what is left. An epoch that is under way, as after an exception, is part of the run alone."""
        self._epoch = None
        if self._run is None:
            return
        run, self._run = self._run, None
        run.stop()
        self._log_ended()
        self.totals = metrics_of(run.to_dict(), RUN)
        self.log(self.totals, None)

    @contextlib.contextmanager
    def epoch(self, step: int) -> Iterator[None]:
        """Measure the block as the epoch of this step."""
        self.start_epoch()
        yield
        self.stop_epoch(step)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def _log_ended(self) -> None:
        if self._ended is not None:
            step, measurement = self._ended
            self._ended = None
            self.log(metrics_of(measurement.to_dict(), EPOCH), step)
