#!/usr/bin/env python3
"""Builds a release of the commit twice, in two folders: all files have to be the same byte for
byte.

    tests/packages/again.py [ARCHITECTURE...]

Takes twice as long as the first `make dist`, since neither finds what the other has built.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from command import run


def main(architectures: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # Names of different length move whatever contains them.
        first, second = (
            released(Path(folder, name), architectures) for name in ("first", "another")
        )
    different = sorted(
        name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
    )
    if different:
        sys.exit(f"two builds of one commit differ in {', '.join(different)}")
    print(f"two builds in two folders: the same {len(first)} files")


def released(worktree: Path, architectures: list[str]) -> dict[str, str]:
    """The checksum of each file of a release that is built in this folder, which is removed
    afterwards.
    """
    run("git", "worktree", "add", "--detach", worktree, "HEAD")
    try:
        run("make", "--directory", worktree, "dist", f"ARCHITECTURES={' '.join(architectures)}")
        lines = (worktree / "dist" / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
        return {name: checksum for checksum, name in (line.split() for line in lines)}
    finally:
        run("git", "worktree", "remove", "--force", worktree)


if __name__ == "__main__":
    main(sys.argv[1:] or ["x86_64"])
