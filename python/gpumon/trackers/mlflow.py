"""The tracker for MLflow: ``with mlflow.start_run(), MlflowTracker() as tracker: ...``."""

from __future__ import annotations

import mlflow

from gpumon.trackers import Tracker


class MlflowTracker(Tracker):
    """Logs the GPU use of a ``with`` block and its epochs to a run of MLflow.

    >>> with MlflowTracker() as tracker:    # doctest: +SKIP
    ...     for number in range(3):
    ...         with tracker.epoch(number):
    ...             train()
    """

    def __init__(self, run_id: str | None = None) -> None:
        """Log to the run with this ID, or by default to the active run of the thread."""
        super().__init__()
        self._run_id = run_id

    def log_metrics(self, metrics: dict[str, float], step: int | None) -> None:
        """Log the metrics to MLflow."""
        mlflow.log_metrics(metrics, step=step, run_id=self._run_id)
