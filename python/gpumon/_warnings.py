"""The warning that GPUs are not measured."""

from __future__ import annotations

import inspect
import os
import warnings

FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep

_said = False


class GpumonWarning(UserWarning):
    """The warning that GPUs are not measured in this process. The message names the reason and the
    remedy.
    """


def warn_once(text: str) -> None:
    """Warn at the line that called this package. Only the first call in a process warns."""
    global _said
    if _said:
        return
    _said = True
    warn(text)


def warn(text: str) -> None:
    """Warn at the line that called this package."""
    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(FOLDER):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, GpumonWarning, stacklevel=level)
