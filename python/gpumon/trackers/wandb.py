"""The tracker for Weights & Biases: ``with wandb.init(...) as run, WandbTracker(run) as tracker:
...``.
"""

from __future__ import annotations

import wandb

from gpumon.trackers import EPOCH, Tracker

#: The x axis of the metrics. W&B's own step can only increase, so it cannot be used for an epoch,
#: which is logged some time after its end.
STEP = f"{EPOCH}epoch"


class WandbTracker(Tracker):
    """Logs the GPU use of a ``with`` block and its epochs to a run of Weights & Biases.

    The metrics of epochs are charts with ``gpu/epoch`` as their x axis. The numbers of the whole
    run are in its summary.

    >>> with WandbTracker(run) as tracker:    # doctest: +SKIP
    ...     for number in range(3):
    ...         with tracker.epoch(number):
    ...             train()
    """

    def __init__(self, run: wandb.Run) -> None:
        """Log to this run, the result of `wandb.init`."""
        super().__init__()
        self._wandb = run
        run.define_metric(STEP, hidden=True)
        run.define_metric(f"{EPOCH}*", step_metric=STEP)

    def log_metrics(self, metrics: dict[str, float], step: int | None) -> None:
        """Log the metrics to Weights & Biases."""
        if step is None:
            self._wandb.summary.update(metrics)
        else:
            self._wandb.log({**metrics, STEP: step})
