"""What can go wrong, each with its cure in the text."""

from __future__ import annotations


class GpumonError(Exception):
    """The base of all errors of this package. The text names the subject, the cause and the cure."""


class ProgramError(GpumonError):
    """The ``gpumon`` program cannot be started, has ended, or does not answer."""


class RequestError(GpumonError):
    """The ``gpumon`` program has refused a request, for example since no server with a history
    runs.
    """


class MeasurementError(GpumonError):
    """A measurement is used before its beginning, or begun twice."""
