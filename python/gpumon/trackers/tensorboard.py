"""The tracker for TensorBoard: ``with TensorBoardTracker(writer) as tracker: ...``, with a writer
of PyTorch or tensorboardX.
"""

from __future__ import annotations

from typing import Protocol

from gpumon.trackers import Tracker


class Writer(Protocol):
    """The common interface of `torch.utils.tensorboard.SummaryWriter` and
    `tensorboardX.SummaryWriter`.
    """

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object:
        """Write a number at a step."""


class TensorBoardTracker(Tracker):
    """Writes the GPU use of a ``with`` block and its epochs. Numbers of the whole run have the step
    of the last epoch.

    >>> with TensorBoardTracker(writer) as tracker:    # doctest: +SKIP
    ...     for number in range(3):
    ...         with tracker.epoch(number):
    ...             train()
    """

    def __init__(self, writer: Writer) -> None:
        super().__init__()
        self._writer = writer
        self._last_step = 0

    def log_metrics(self, metrics: dict[str, float], step: int | None) -> None:
        """Write the metrics to TensorBoard."""
        self._last_step = self._last_step if step is None else step
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, self._last_step)
