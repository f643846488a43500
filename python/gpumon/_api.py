"""The functions of the package."""

from __future__ import annotations

import operator
from typing import Any, Callable, TypeVar, overload

from gpumon._helper import current
from gpumon._measurement import Measurement

F = TypeVar("F", bound=Callable[..., Any])


@overload
def measure(name: str | None = None, *, pid: int | None = None) -> Measurement: ...
@overload
def measure(name: F) -> F: ...
def measure(name: Any = None, *, pid: int | None = None) -> Any:
    """Measure what a block or a function takes of the GPUs.

    In a ``with`` or ``async with`` statement, the `Measurement` is of the block, and may be nested. As a decorator, with or
    without a name, it measures each call of a function, a coroutine or a generator by itself; the function gets an
    attribute `measurements` with those of its last 100 calls. An exception passes through, and what was used until then
    is measured. With `pid`, another process is measured with all that it starts, in the place of this one.

    Raises:
        TypeError: the name is no text, or the PID no integer.
        ValueError: there can be no such PID.

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
    if callable(name):
        return Measurement(None, pid)(name)
    if name is not None:
        name = _text(name, "the name of a measurement")
    if pid is not None and operator.index(pid) < 1:
        raise ValueError(f"there is no process {pid}: name the PID of one that runs, 1 or more")
    return Measurement(name, pid)


def mark(text: str) -> None:
    """Mark this moment: on the charts of the server, where one runs, and in the measurements that are under way.

    It waits for nothing.

    Raises:
        TypeError: it is no text.

    >>> gpumon.mark("epoch 3")
    """
    current().mark(_text(text, "a mark"))


def _text(text: object, what: str) -> str:
    """Return what has to be a text, with `?` for halves of letters, which paths of files may have and JSON has not.

    Raises:
        TypeError: it is something else, which the program would refuse later, when nobody listens.
    """
    if not isinstance(text, str):
        raise TypeError(f"{what} is a text, and {text!r} is none: write str(...) around it")
    return text.encode(errors="replace").decode()
