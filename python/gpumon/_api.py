"""The public functions of the package."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable, overload

from gpumon._arguments import check_text as checked_text
from gpumon._helper import current_helper
from gpumon._limits import LONGEST_MARK
from gpumon._measurement import Measurement

if TYPE_CHECKING:
    from gpumon._decorator import _P, _R, Measured


@overload
def measure(name: str | None = None, *, pid: int | None = None) -> Measurement: ...
@overload
def measure(
    name: Callable[_P, _R], *, pid: int | None = None
) -> Measured[Callable[_P, _R], _P, _R]: ...
def measure(name: Any = None, *, pid: int | None = None) -> Any:
    """Measure the GPU use of a block or a function.

    In a ``with`` or ``async with`` statement, the result is the `Measurement` of the block. Blocks
    may be nested. As a decorator, with or without a name, it measures each call of a function, a
    coroutine or a generator separately; the function gets an attribute `measurements` with the
    measurements of its last 100 calls. If the code raises an exception, the measurement ends there
    and the exception is passed on. With `pid`, the process with this PID and all of its descendants
    are measured instead of this process.

    Raises:
        TypeError: the name is not a string, or the PID is not an integer.
        ValueError: there is no such process.

    >>> with gpumon.measure("train") as m:
    ...     pass
    >>> m.gpu_s is None or m.gpu_s >= 0
    True
    >>> @gpumon.measure
    ... def step():
    ...     return 42
    >>> step()
    42
    >>> step.measurements[-1].name
    'step'
    """
    measurement = Measurement(None if callable(name) else name, pid)
    if measurement.pid is not None and not _is_process(measurement.pid):
        raise ValueError(f"there is no process {measurement.pid}; use the PID of a running process")
    return measurement(name) if callable(name) else measurement


def mark(text: str) -> None:
    """Mark this moment on the charts of a running server and in all running measurements.

    The function returns immediately.

    Raises:
        TypeError: the text is not a string.
        ValueError: the text is empty or has more than 100 characters.

    >>> gpumon.mark("epoch 3")
    """
    text = checked_text(text, "the text of a mark").strip()
    if not 1 <= len(text) <= LONGEST_MARK:
        remedy = "shorten it" if text else "describe what happens at this moment"
        raise ValueError(
            f"the text of a mark must have 1 to {LONGEST_MARK} characters, but has {len(text)}: "
            f"{remedy}"
        )
    current_helper().mark(text)


def _is_process(pid: int) -> bool:
    """Return whether there is a process with this PID, even if it belongs to another user."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True
