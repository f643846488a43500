"""Keras 3: ``model.fit(..., callbacks=[GpuCostCallback(), ...])``, before callbacks that log."""

from __future__ import annotations

from typing import Any

import keras

from gpumon.trackers._tracker import Tracker


class GpuCostCallback(keras.callbacks.Callback, Tracker):
    """Adds what each epoch took of the GPUs to its logs, and so to the history and to the callbacks
    that stand behind this one.

    Keras logs an epoch at its end, so that waits for its numbers, three seconds at most. Those of
    the whole training are in `totals` afterwards.
    """

    def __init__(self) -> None:
        super().__init__()
        Tracker.__init__(self)
        self._logs: dict[str, Any] | None = None

    def log_metrics(self, metrics: dict[str, float], step: int | None) -> None:
        """Add the metrics to what Keras logs."""
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
