"""MLflow: ``with mlflow.start_run(), MlflowTracker() as tracker: ...``."""

from __future__ import annotations

import mlflow

from gpumon.trackers._tracker import Tracker


class MlflowTracker(Tracker):
    """Logs to a run of MLflow what the block and its epochs took of the GPUs.

    >>> with MlflowTracker() as tracker:    # doctest: +SKIP
    ...     for number in range(3):
    ...         with tracker.epoch(number):
    ...             train()
    """

    def __init__(self, run_id: str | None = None) -> None:
        """Log to the run of this ID; without one, to the active run of the thread."""
        super().__init__()
        self._run_id = run_id

    def log_metrics(self, metrics: dict[str, float], step: int | None) -> None:
        """Log to MLflow."""
        mlflow.log_metrics(metrics, step=step, run_id=self._run_id)
