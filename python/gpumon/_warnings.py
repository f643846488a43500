"""The one warning of a process that nothing is measured."""

from __future__ import annotations

import inspect
import os
import warnings

FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep

_said = False


class GpumonWarning(UserWarning):
    """GPUs are not measured in this process; the text says why, and what to do."""


def warn_once(text: str) -> None:
    """Warn at the line that called this package; only once in a process."""
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
