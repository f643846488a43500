"""The exceptions of this package. Each message describes the remedy."""

from __future__ import annotations


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
