"""Compares the output of two programs cell by cell, and separates changing values from real
differences.

A cell is a word with the white space before it. If a cell differs between two outputs of NVIDIA's
own tool, its value changes over time; if it is a number, any number is accepted. The layout is
compared, too: a word must begin or end in the same column.
"""

import re
from dataclasses import dataclass, field

NUMBER = re.compile(r"[-+]?(0x[0-9a-fA-F]+|\d+(\.\d+)?)")


@dataclass
class Verdict:
    """The number of equal cells and of cells with changing values, and all differences."""

    equal: int = 0
    moved: int = 0
    different: list = field(default_factory=list)


def split_words_with_columns(line):
    """Returns the words of a line: text, first column, last column."""
    return [(match.group(), match.start(), match.end()) for match in re.finditer(r"\S+", line)]


def split_csv(line):
    """Returns the cells of a CSV line. Only the order of the cells counts, not their columns."""
    return [(cell, index, index) for index, cell in enumerate(line.split(", "))]


def compare_outputs(theirs, ours, is_csv=False):
    """Compares outputs. `theirs` and `ours` are lists of several outputs as (exit code, text)."""
    verdict = Verdict()
    codes = {take[0] for take in theirs}
    if ours[-1][0] not in codes:
        verdict.different.append(f"exit code {ours[-1][0]} instead of {sorted(codes)}")
    taken = [take[1].split("\n") for take in theirs]
    own = ours[-1][1].split("\n")
    fitting = [lines for lines in taken if len(lines) == len(own)]
    if not fitting:
        counts = sorted({len(lines) for lines in taken})
        verdict.different.append(f"{len(own)} lines instead of {counts}")
        fitting = taken[-1:]
    split = split_csv if is_csv else split_words_with_columns
    for number, line in enumerate(own):
        others = [lines[number] for lines in fitting if number < len(lines)]
        if not others:
            verdict.different.append(f"line {number + 1}: {line!r} is an extra line")
        elif line in others:
            verdict.equal += len(split(line))
        else:
            compare_line(number + 1, line, others, split, verdict)
    return verdict


def compare_line(number, line, others, split, verdict):
    own = split(line)
    theirs = [split(other) for other in others if len(split(other)) == len(own)]
    if not theirs:
        verdict.different.append(f"line {number}: {line!r} instead of {others[-1]!r}")
        return
    for place, (word, start, end) in enumerate(own):
        words = {cells[place][0] for cells in theirs}
        stands = any(is_aligned(own, cells, place) for cells in theirs)
        if not stands:
            verdict.different.append(
                f"line {number}: {word!r} is in another column: {line!r} instead of {others[-1]!r}"
            )
        elif word in words:
            verdict.equal += 1
        elif is_changing_number(word, words):
            verdict.moved += 1
        else:
            verdict.different.append(
                f"line {number}: {word!r} instead of {sorted(words)}: {line.strip()!r}"
            )


def is_aligned(own, theirs, place):
    """Returns whether a cell begins or ends in the same column, or at the same distance from the
    cell before it.
    """
    (_, start, end), (_, their_start, their_end) = own[place], theirs[place]
    behind = place > 0 and start - own[place - 1][2] == their_start - theirs[place - 1][2]
    return start == their_start or end == their_end or behind


def is_changing_number(word, words):
    """Returns whether `word` is a changing number: the other tool has printed several different
    words, and `word` differs from one of them only in its numbers.
    """

    def remove_numbers(text):
        return NUMBER.sub("0", text)

    return len(words) > 1 and remove_numbers(word) in {remove_numbers(other) for other in words}
