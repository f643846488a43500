"""Compares what two programs said, cell by cell, and tells what moved in between from what differs.

A cell is a word with the white space before it. What NVIDIA's tool itself does not say twice the
same moves; a number that moves may be any number. The layout counts, too: a word must begin or end
in the same column.
"""

import re
from dataclasses import dataclass, field

NUMBER = re.compile(r"[-+]?(0x[0-9a-fA-F]+|\d+(\.\d+)?)")


@dataclass
class Verdict:
    """How many cells are equal, how many moved, and what differs."""

    equal: int = 0
    moved: int = 0
    different: list = field(default_factory=list)


def cells(line):
    """The words of a line: text, first column, last column."""
    return [(match.group(), match.start(), match.end()) for match in re.finditer(r"\S+", line)]


def commas(line):
    """The cells of a line of CSV, where only the order counts."""
    return [(cell, index, index) for index, cell in enumerate(line.split(", "))]


def compare(theirs, ours, is_csv=False):
    """`theirs` and `ours` are several takes each: (exit code, output)."""
    verdict = Verdict()
    codes = {take[0] for take in theirs}
    if ours[-1][0] not in codes:
        verdict.different.append(f"exit code {ours[-1][0]}, not {sorted(codes)}")
    taken = [take[1].split("\n") for take in theirs]
    own = ours[-1][1].split("\n")
    fitting = [lines for lines in taken if len(lines) == len(own)]
    if not fitting:
        verdict.different.append(f"{len(own)} lines, not {sorted({len(lines) for lines in taken})}")
        fitting = taken[-1:]
    split = commas if is_csv else cells
    for number, line in enumerate(own):
        others = [lines[number] for lines in fitting if number < len(lines)]
        if not others:
            verdict.different.append(f"line {number + 1}: {line!r} is one too many")
        elif line in others:
            verdict.equal += len(split(line))
        else:
            compare_line(number + 1, line, others, split, verdict)
    return verdict


def compare_line(number, line, others, split, verdict):
    own = split(line)
    theirs = [split(other) for other in others if len(split(other)) == len(own)]
    if not theirs:
        verdict.different.append(f"line {number}: {line!r}, not {others[-1]!r}")
        return
    for place, (word, start, end) in enumerate(own):
        words = {cells[place][0] for cells in theirs}
        stands = any(stands_alike(own, cells, place) for cells in theirs)
        if not stands:
            verdict.different.append(
                f"line {number}: {word!r} in another column: {line!r}, not {others[-1]!r}"
            )
        elif word in words:
            verdict.equal += 1
        elif moves(word, words):
            verdict.moved += 1
        else:
            verdict.different.append(
                f"line {number}: {word!r}, not {sorted(words)}: {line.strip()!r}"
            )


def stands_alike(own, theirs, place):
    """Whether a cell begins or ends where the other does, or as far behind the cell before it."""
    (_, start, end), (_, their_start, their_end) = own[place], theirs[place]
    behind = place > 0 and start - own[place - 1][2] == their_start - theirs[place - 1][2]
    return start == their_start or end == their_end or behind


def moves(word, words):
    """Whether it is a number where the other tool's numbers do not stay the same."""

    def shape(text):
        return NUMBER.sub("0", text)

    return len(words) > 1 and shape(word) in {shape(other) for other in words}
