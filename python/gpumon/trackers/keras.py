"""Keras 3: ``model.fit(..., callbacks=[GpuCostCallback(), ...])``. Place it before callbacks that
log.
"""

from __future__ import annotations

from typing import Any

import keras

from gpumon.trackers import Tracker


class GpuCostCallback(keras.callbacks.Callback, Tracker):
    """Adds the GPU use of each epoch to its logs, and so to the history and to the callbacks after
    this one.

    Keras logs an epoch when it ends, so the end of an epoch waits up to three seconds for the
    numbers. The numbers of the whole training are in `totals` afterwards.
    """

    def __init__(self) -> None:
        super().__init__()
        Tracker.__init__(self)
        self._logs: dict[str, Any] | None = None

    def log_metrics(self, metrics: dict[str, float], step: int | None) -> None:
        """Add the metrics to the logs of Keras."""
        if self._logs is not None:
            self._logs.update(metrics)

    def on_train_begin(self, logs: dict[str, Any] | None = None) -> None:
        self.start()

    def on_epoch_begin(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self.start_epoch()

    def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
        self._logs = logs
        self.stop_epoch(epoch, is_logged_now=True)

    def on_train_end(self, logs: dict[str, Any] | None = None) -> None:
        self._logs = logs
        self.stop()
