"""The GPU cost of training runs, logged to experiment trackers and training frameworks.

Each module of this package needs only its own library: `lightning`, `transformers`, `keras`,
`mlflow`, `wandb` or `tensorboard`. All of them log the metrics of `metrics_of`, once for each epoch
and once for the run.
"""

from __future__ import annotations

import abc
import contextlib
import time
from typing import TYPE_CHECKING, Callable

import gpumon
from gpumon._errors import warn

if TYPE_CHECKING:
    from collections.abc import Iterator

    from typing_extensions import Self

    from gpumon import Cost, Measurement

__all__ = ["Tracker", "metrics_of"]

#: The prefix of an epoch's metrics.
EPOCH = "gpu/"
#: The prefix of the whole run's metrics.
RUN = "gpu/run/"
#: The number of seconds after which the final numbers of an ended measurement can be read without
#: waiting.
FINAL_AFTER_S = 5.0


class Tracker(abc.ABC):
    """Measures a run and its epochs, and logs their GPU use.

    The driver reports the last numbers of an epoch up to three seconds after its end. Training does
    not wait for them: they are logged when a later epoch ends, with the step of their own epoch.
    The numbers of the last epoch are logged together with the run's.

    To log elsewhere, derive a class that has `log_metrics`. If this method fails, for example
    because its server cannot be reached, there is one warning and the run continues.
    """

    def __init__(self) -> None:
        #: The metrics of the last run, after it has ended.
        self.totals: dict[str, float] = {}
        self._run: Measurement | None = None
        self._epoch: Measurement | None = None
        self._ended: list[tuple[int, float, Measurement]] = []
        self._has_warned = False

    @abc.abstractmethod
    def log_metrics(self, metrics: dict[str, float], step: int | None) -> None:
        """Log the metrics of the epoch at this step, or of the whole run if the step is `None`."""

    def start(self) -> Self:
        """Start the run."""
        self._run = gpumon.measure("run").start()
        return self

    def start_epoch(self) -> None:
        """Start an epoch."""
        self._epoch = gpumon.measure("epoch").start()

    def stop_epoch(self, step: int, is_logged_now: bool = False) -> None:
        """End the epoch, which will be logged at this step. Also log earlier epochs whose numbers
        are final.

        With `is_logged_now`, wait for the numbers and log the epoch immediately. Frameworks that
        cannot log at an earlier step need this.
        """
        if self._epoch is not None:
            self._epoch.stop()
            self._ended.append((step, time.monotonic(), self._epoch))
            self._epoch = None
            self._log_ended_epochs(is_last=is_logged_now)

    def stop(self) -> None:
        """End the run, and log all remaining epochs. An unfinished epoch, for example after an
        exception, is only counted in the run.
        """
        self._epoch = None
        if self._run is None:
            return
        run, self._run = self._run, None
        run.stop()
        self._log_ended_epochs(is_last=True)
        self.totals = metrics_of(run.to_dict(), RUN)
        self.try_logging(self.log_metrics, self.totals, None)

    @contextlib.contextmanager
    def epoch(self, step: int) -> Iterator[None]:
        """Measure the block as the epoch of this step."""
        self.start_epoch()
        yield
        self.stop_epoch(step)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def _log_ended_epochs(self, is_last: bool) -> None:
        while self._ended and (is_last or time.monotonic() - self._ended[0][1] > FINAL_AFTER_S):
            step, _, measurement = self._ended.pop(0)
            self.try_logging(self.log_metrics, metrics_of(measurement.to_dict(), EPOCH), step)

    def try_logging(self, log: Callable[..., object], *args: object, **options: object) -> None:
        """Call a logging function. The first error becomes a warning; later ones are ignored."""
        try:
            log(*args, **options)
        except Exception as error:
            if not self._has_warned:
                self._has_warned = True
                warn(
                    f"{type(self).__name__} cannot log the GPU use: "
                    f"{type(error).__name__}: {error}. The run continues without these metrics. "
                    "Check that the server of the tracker can be reached"
                )


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
