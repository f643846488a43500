"""Checks of arguments. Each error names a valid value."""

from __future__ import annotations

import math
import numbers
import operator
import reprlib


def check_text(value: object, what: str) -> str:
    """Return the string with lone surrogates replaced by `?`: file paths may contain them, JSON may
    not.

    Raises:
        TypeError: the value is not a string. The program would refuse the value too late to raise
            an error in the caller.
    """
    if not isinstance(value, str):
        raise TypeError(
            f"{what} must be a string, not {reprlib.repr(value)}: convert it with str(...)"
        )
    return value.encode(errors="replace").decode()


def check_whole_number(value: object, name: str, least: int, most: int) -> int:
    """Return an integer within limits.

    Raises:
        TypeError: the value is not a number.
        ValueError: the value has a fraction, is a bool, or is outside the limits.
    """
    wrong = f"{name}={reprlib.repr(value)} is invalid: pass an integer from {least} to {most}"
    if isinstance(value, (bool, float)):
        raise ValueError(wrong)
    try:
        number = operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(wrong) from None
    if not least <= number <= most:
        raise ValueError(wrong)
    return number


def check_seconds(value: object, name: str, alternatives: str = "") -> float:
    """Return a finite number of seconds.

    Raises:
        TypeError: the value is not a number.
        ValueError: the value is not finite, or is a bool.
    """
    wrong = f"{name}={reprlib.repr(value)} is invalid: pass a number of seconds{alternatives}"
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
