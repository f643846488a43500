"""Formatting of numbers: three significant digits and one unit, as on gpumon's other screens."""

from __future__ import annotations

import re
import sys

KIB = 1024.0
MIB = KIB * KIB
GIB = KIB * MIB

DASH = "–"

# Invisible characters that `str.isprintable` accepts. The same rule is in `probe/src/untrusted.rs`;
# `tests/invisible-characters.json` has test cases for both.
_INVISIBLE = re.compile(
    r"[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    r"\U0001d159\U000e0100-\U000e01ef]"
)


def escape_controls(text: str) -> str:
    r"""Return a text in one line. Escape all characters that control a terminal, or that hide or
    reorder other text.

    >>> print(escape_controls("a\x1b[2J\nb\u202ec ü"))
    a\x1b[2J\nb\u202ec ü
    """
    if text.isprintable() and not _INVISIBLE.search(text):
        return text
    return "".join(
        letter
        if letter.isprintable() and not _INVISIBLE.match(letter)
        else letter.encode("unicode_escape").decode()
        for letter in text
    )


#: Replacements for characters that an output cannot encode.
_SIMPLER = str.maketrans({DASH: "-", "…": "...", "°": ""})


def escape_unencodable(text: str) -> str:
    """Return the text with escapes for characters that standard output cannot encode."""
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return text.translate(_SIMPLER).encode(encoding, "backslashreplace").decode(encoding)
    return text


def format_three_digits(value: float) -> str:
    """Return a number with at most three significant digits, and at most two after the point.

    >>> [format_three_digits(value) for value in (0.5, 9.996, 78.23, 140.4)]
    ['0.50', '10.0', '78.2', '140']
    """
    size = abs(value)
    return f"{value:.{2 if size < 9.995 else 1 if size < 99.95 else 0}f}"


def format_bytes(value: float) -> str:
    """Return a number of bytes with an IEC unit.

    >>> format_bytes(300 * 1024**2), format_bytes(61 * 1024**3)
    ('300 MiB', '61.0 GiB')
    """
    size = abs(value)
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if size >= unit:
            return f"{format_three_digits(value / unit)} {name}"
    return f"{value:.0f} B"


def format_seconds(value: float) -> str:
    """Return a duration as text. From two minutes on, it has two units.

    >>> [format_seconds(value) for value in (0, 0.0824, 12.44, 200, 7300)]
    ['0 s', '82.4 ms', '12.4 s', '3 min 20 s', '2 h 1 min']
    """
    if value <= 0:
        return "0 s"
    if value < 0.9995:
        return f"{format_three_digits(value * 1000)} ms"
    if value < 119.5:
        return f"{format_three_digits(value)} s"
    minutes, rest = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if minutes else f"{hours} h"


def format_joules(value: float) -> str:
    """Return an energy with its unit.

    >>> format_joules(420), format_joules(6100), format_joules(1.2e6)
    ('420 J', '6.10 kJ', '1.20 MJ')
    """
    for unit, name in ((1e6, "MJ"), (1e3, "kJ")):
        if value >= unit * 0.9995:
            return f"{format_three_digits(value / unit)} {name}"
    return f"{format_three_digits(value)} J"
