"""Hugging Face's Trainer: ``trainer.add_callback(GpuCostCallback(trainer))``."""

from __future__ import annotations

from typing import Any

from transformers import Trainer, TrainerCallback

from gpumon.trackers import Tracker


class GpuCostCallback(TrainerCallback, Tracker):
    """Logs the GPU use of each epoch and of the whole training in the same way as the loss: to all
    trackers in `report_to`.

    The trainer can only log at its current step, so the end of each epoch waits up to three seconds
    for the numbers. If there are several processes, the first one measures itself and the processes
    that it has started.
    """

    def __init__(self, trainer: Trainer) -> None:
        Tracker.__init__(self)
        # Callbacks do not receive the trainer, which is needed for logging, so it is passed to the
        # constructor.
        self._trainer = trainer

    def log_metrics(self, metrics: dict[str, float], step: int | None) -> None:
        """Pass the metrics to the trainer."""
        self._trainer.log(metrics)

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self.start()

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        if state.is_world_process_zero:
            self.start_epoch()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.stop_epoch(state.global_step, is_logged_now=True)

    def on_log(
        self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **_: Any
    ) -> None:
        # This is the trainer's last log. `on_train_end` would be too late, because the integrations
        # in `report_to` have closed their runs by then.
        if logs is not None and "train_runtime" in logs:
            self.stop()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.stop()
