"""A function whose calls are measured, one by one."""

from __future__ import annotations

import collections
import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, TypeVar, cast

from gpumon._measurement import Measurement

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

F = TypeVar("F", bound=Callable[..., Any])

#: So many of the last calls are kept.
MOST_CALLS = 100


def decorated(function: F, name: str | None, pid: int | None) -> F:
    """Return a function with an attribute `measurements`: of its last 100 calls, the newest last."""
    measurements: collections.deque[Measurement] = collections.deque(maxlen=MOST_CALLS)

    def begun() -> Measurement:
        measurement = Measurement(name or function.__qualname__, pid)
        measurements.append(measurement)
        return measurement

    wrapper = _wrapper(function, begun)
    setattr(wrapper, "measurements", measurements)
    return cast("F", wrapper)


def _wrapper(function: Callable[..., Any], begun: Callable[[], Measurement]) -> Callable[..., Any]:
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def of_coroutine(*args: Any, **options: Any) -> Any:
            with begun():
                return await function(*args, **options)

        return of_coroutine

    if inspect.isgeneratorfunction(function):
        values: Callable[..., Generator[Any, Any, Any]] = function

        @functools.wraps(function)
        def of_generator(*args: Any, **options: Any) -> Generator[Any, Any, Any]:
            # From the first value to the last, with what its consumer does in between.
            with begun():
                return (yield from values(*args, **options))

        return of_generator

    if inspect.isasyncgenfunction(function):

        @functools.wraps(function)
        async def of_async_generator(*args: Any, **options: Any) -> AsyncGenerator[Any, None]:
            with begun():
                values = function(*args, **options)
                try:
                    async for value in values:
                        yield value
                finally:
                    await values.aclose()

        return of_async_generator

    @functools.wraps(function)
    def of_function(*args: Any, **options: Any) -> Any:
        with begun():
            return function(*args, **options)

    return of_function
