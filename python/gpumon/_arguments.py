"""Checks of arguments. Each error names a valid value."""

from __future__ import annotations

import math
import numbers
import operator
import reprlib


def text(value: object, what: str) -> str:
    """Return a string, with `?` for lone surrogates, which file paths may contain and JSON may not.

    Raises:
        TypeError: the value is not a string. The program would refuse the value too late to raise
            an error in the caller.
    """
    if not isinstance(value, str):
        raise TypeError(
            f"{what} must be a string, not {reprlib.repr(value)}: write str(...) around it"
        )
    return value.encode(errors="replace").decode()


def whole_number(value: object, name: str, least: int, most: int) -> int:
    """Return an integer within limits.

    Raises:
        TypeError: the value is not a number.
        ValueError: the value has a fraction, is a bool, or is outside the limits.
    """
    wrong = (
        f"{name}={reprlib.repr(value)} is not possible: pass a whole number from {least} to {most}"
    )
    if isinstance(value, (bool, float)):
        raise ValueError(wrong)
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(wrong) from None
    if not least <= number <= most:
        raise ValueError(wrong)
    return number


def seconds(value: object, name: str, alternatives: str = "") -> float:
    """Return a finite number of seconds.

    Raises:
        TypeError: the value is not a number.
        ValueError: the value is not finite, or is a bool.
    """
    wrong = f"{name}={reprlib.repr(value)} is not possible: pass seconds{alternatives}"
    if isinstance(value, bool):
        raise ValueError(wrong)
    if not isinstance(value, numbers.Real):
        raise TypeError(wrong)
    try:
        number = float(value)
    except OverflowError:
        raise ValueError(wrong) from None
    if not math.isfinite(number):
        raise ValueError(wrong)
    return number
