"""What training runs cost, in the experiment trackers and training frameworks that people have
already.

Each module of this package needs its own library, and no other: `lightning`, `transformers`,
`keras`, `mlflow`, `wandb`, `tensorboard`. All of them log the metrics of `metrics_of`, once for
each epoch and once for the run.
"""

from gpumon.trackers._metrics import metrics_of
from gpumon.trackers._tracker import Tracker

__all__ = ["Tracker", "metrics_of"]
