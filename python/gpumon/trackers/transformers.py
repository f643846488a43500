"""Trainer of Hugging Face: ``trainer.add_callback(GpuCostCallback(trainer))``."""

from __future__ import annotations

from typing import Any

from transformers import Trainer, TrainerCallback

from gpumon.trackers._tracker import Tracker


class GpuCostCallback(TrainerCallback, Tracker):
    """Logs what each epoch and the whole training took of the GPUs, as the trainer logs the loss:
    to all of `report_to`.

    The trainer logs at its present step alone, so the end of each epoch waits for its numbers,
    three seconds at most. Of several processes, the first measures: itself and those that it has
    started.
    """

    def __init__(self, trainer: Trainer) -> None:
        Tracker.__init__(self)
        # A callback is told of everything but the trainer, which alone can log.
        self._trainer = trainer

    def log_metrics(self, metrics: dict[str, float], step: int | None) -> None:
        """Hand the metrics to the trainer."""
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
        # The last that a trainer logs. At the end of the training, what reports has closed its run
        # already.
        if logs is not None and "train_runtime" in logs:
            self.stop()

    def on_train_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        self.stop()
