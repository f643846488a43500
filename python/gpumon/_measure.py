"""The functions `measure` and `mark`, and the decorator that measures each call of a function."""

from __future__ import annotations

import collections
import functools
import inspect
import os
from typing import TYPE_CHECKING, Any, Callable, cast, overload

from gpumon._arguments import check_text
from gpumon._helper import current_helper
from gpumon._limits import LONGEST_MARK
from gpumon._measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from typing import Generic, TypeVar, type_check_only

    from typing_extensions import Concatenate, ParamSpec

    _F = TypeVar("_F")
    _P = ParamSpec("_P")
    _Q = ParamSpec("_Q")
    _R = TypeVar("_R", covariant=True)
    _T = TypeVar("_T")

    @type_check_only
    class Measured(Generic[_F, _P, _R]):
        """The type of a decorated function. mypy uses the function's own type `_F` to find the
        class of a method.
        """

        measurements: collections.deque[Measurement]
        __name__: str
        __qualname__: str

        @property
        def __wrapped__(self) -> _F: ...

        def __call__(self, *args: _P.args, **options: _P.kwargs) -> _R: ...

        # The overloads are for class methods, functions accessed through a class, methods of an
        # object, and static methods, in this order.
        @overload
        def __get__(
            self: Measured[Callable[Concatenate[type[_T], _Q], _R], _P, _R],
            instance: _T | None,
            owner: type[_T],
            /,
        ) -> Measured[Callable[_Q, _R], _Q, _R]: ...
        @overload
        def __get__(self, instance: None, owner: type, /) -> Measured[_F, _P, _R]: ...
        @overload
        def __get__(
            self: Measured[Callable[Concatenate[_T, _Q], _R], _P, _R],
            instance: _T,
            owner: type | None = None,
            /,
        ) -> Measured[Callable[_Q, _R], _Q, _R]: ...
        @overload
        def __get__(
            self, instance: object, owner: type | None = None, /
        ) -> Measured[_F, _P, _R]: ...
        def __get__(self, instance: Any, owner: Any = None, /) -> Any: ...


#: The number of calls whose measurements a decorated function keeps.
MAX_MEASUREMENTS = 100


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
    """Add a mark at the current time to the charts of a running server and to all running
    measurements.

    The function returns immediately.

    Raises:
        TypeError: the text is not a string.
        ValueError: the text is empty or has more than 100 characters.

    >>> gpumon.mark("epoch 3")
    """
    text = check_text(text, "the text of a mark").strip()
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


def wrap_with_measurements(
    function: Callable[_P, _R], name: str | None, pid: int | None
) -> Measured[Callable[_P, _R], _P, _R]:
    """Return a function with an attribute `measurements`: the measurements of its last 100 calls,
    the newest last.
    """
    measurements: collections.deque[Measurement] = collections.deque(maxlen=MAX_MEASUREMENTS)
    label: str | None = getattr(function, "__qualname__", None)

    def new_measurement() -> Measurement:
        measurement = Measurement(name or label, pid)
        measurements.append(measurement)
        return measurement

    wrapper = _wrap(function, new_measurement)
    setattr(wrapper, "measurements", measurements)
    return cast("Measured[Callable[_P, _R], _P, _R]", wrapper)


def _wrap(function: Callable[..., Any], begun: Callable[[], Measurement]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def measured_coroutine(*args: Any, **options: Any) -> Any:
            with begun():
                return await function(*args, **options)

        return measured_coroutine

    if inspect.isgeneratorfunction(function):
        values: Callable[..., Generator[Any, Any, Any]] = function

        @functools.wraps(function)
        def measured_generator(*args: Any, **options: Any) -> Generator[Any, Any, Any]:
            # The measurement covers the time from the generator's first value to its last,
            # including the consumer's work between them.
            with begun():
                return (yield from values(*args, **options))

        return measured_generator

    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def measured_async_generator(*args: Any, **options: Any) -> AsyncGenerator[Any, None]:
            with begun():
                values = function(*args, **options)
                try:
                    async for value in values:
                        yield value
                finally:
                    await values.aclose()

        return measured_async_generator

    @functools.wraps(function)
    def measured_function(*args: Any, **options: Any) -> Any:
        with begun():
            return function(*args, **options)

    return measured_function
