"""TensorBoard: ``with TensorBoardTracker(writer) as tracker: ...``, with the writer of PyTorch or
of tensorboardX.
"""

from __future__ import annotations

from typing import Protocol

from gpumon.trackers._tracker import Tracker


class Writer(Protocol):
    """What `torch.utils.tensorboard.SummaryWriter` and `tensorboardX.SummaryWriter` have in common."""

    def add_scalar(self, tag: str, scalar_value: float, global_step: int) -> object:
        """Write a number at a step."""


class TensorBoardTracker(Tracker):
    """Writes what the block and its epochs took of the GPUs; numbers of the whole run at the step
    of its last epoch.

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
        """Write to TensorBoard."""
        self._last_step = self._last_step if step is None else step
        for name, value in metrics.items():
            self._writer.add_scalar(name, value, self._last_step)
