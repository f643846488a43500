"""A decorator that measures each call of a function."""

from __future__ import annotations

import collections
import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, cast

from gpumon._measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from typing import Generic, TypeVar, overload, type_check_only

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


#: The number of measurements that are kept.
MAX_MEASUREMENTS = 100


def measure_calls(
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
            # The measurement covers the time from the first to the last value, including the
            # consumer's work between them.
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
