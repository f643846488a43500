"""The exceptions and the warning of this package. Each message describes the remedy."""

from __future__ import annotations

import os
import warnings

#: The folder of this package.
FOLDER = os.path.dirname(os.path.abspath(__file__)) + os.sep

#: Whether `warn_once` has already warned.
_said = False


class GpumonError(Exception):
    """The base of all errors of this package. The message names the subject, the cause and the
    remedy.
    """


class ProgramError(GpumonError):
    """The ``gpumon`` program cannot be started, has ended, or does not answer."""


class RequestError(GpumonError):
    """The ``gpumon`` program has refused a request, for example because no server with a history is
    running.
    """


class MeasurementError(GpumonError):
    """A measurement is used before it has started, or is started twice."""


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
    # Every Jupyter server imports this module at startup, and `inspect` takes long to import.
    import inspect

    frame, level = inspect.currentframe(), 1
    while frame is not None and frame.f_code.co_filename.startswith(FOLDER):
        frame, level = frame.f_back, level + 1
    warnings.warn(text, GpumonWarning, stacklevel=level)
