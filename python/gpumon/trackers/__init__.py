"""The GPU cost of training runs, logged to experiment trackers and training frameworks.

Each module of this package needs only its own library: `lightning`, `transformers`, `keras`,
`mlflow`, `wandb` or `tensorboard`. All of them log the metrics of `metrics_of`, once for each epoch
and once for the run.
"""

from gpumon.trackers._metrics import metrics_of
from gpumon.trackers._tracker import Tracker

__all__ = ["Tracker", "metrics_of"]
