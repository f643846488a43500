"""PyTorch Lightning: ``Trainer(callbacks=[GpuCostCallback()])``, with `lightning` or
`pytorch_lightning`.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

from gpumon.trackers import Tracker

#: The two names of the library. A program uses only one of them.
NAMES = ("lightning.pytorch", "pytorch_lightning")


def _import_lightning() -> Any:
    for name in NAMES:
        if name in sys.modules:
            return sys.modules[name]
    try:
        return importlib.import_module(NAMES[0])
    except ModuleNotFoundError:
        return importlib.import_module(NAMES[1])


Callback: Any = _import_lightning().Callback


class GpuCostCallback(Callback, Tracker):
    """Logs the GPU use of each epoch and of the whole fit to all loggers of the trainer.

    If the training runs in several processes, only the first process measures: itself, and all
    processes that it has started. With the strategy ``ddp``, for example, it has started the
    others.
    """

    def __init__(self) -> None:
        super().__init__()
        Tracker.__init__(self)
        self._trainer: Any = None

    def log_metrics(self, metrics: dict[str, float], step: int | None) -> None:
        """Pass the metrics to the trainer's loggers. Metrics of the whole fit are logged at its
        last step.
        """
        for logger in self._trainer.loggers:
            self.try_logging(
                logger.log_metrics,
                metrics,
                step=self._trainer.global_step if step is None else step,
            )

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.is_global_zero:
            self._trainer = trainer
            self.start()

    def on_train_epoch_start(self, trainer: Any, pl_module: Any) -> None:
        if trainer.is_global_zero:
            self.start_epoch()

    def on_train_epoch_end(self, trainer: Any, pl_module: Any) -> None:
        self.stop_epoch(trainer.global_step)

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.stop()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.stop()
