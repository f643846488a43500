#!/usr/bin/env python3
"""Builds a release of the commit twice, in two folders. All files must be identical, byte for byte.

    tests/packages/again.py [ARCHITECTURE...]

Takes twice as long as the first `make dist`, because neither build reuses the other's output.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from command import read_output


def main(architectures: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        # The two folder names have different lengths. If a file contained the name, the rest of the
        # file would be shifted, so the files would differ.
        first, second = (
            build_release(Path(folder, name), architectures) for name in ("first", "another")
        )
    different = sorted(
        name for name in first.keys() | second.keys() if first.get(name) != second.get(name)
    )
    if different:
        sys.exit(f"two builds of the same commit differ in {', '.join(different)}")
    print(f"two builds in two folders are identical: {len(first)} files")


def build_release(worktree: Path, architectures: list[str]) -> dict[str, str]:
    """Build a release in `worktree`, and remove this folder afterwards. Return the checksum of each
    file.
    """
    read_output("git", "worktree", "add", "--detach", worktree, "HEAD")
    try:
        read_output(
            "make", "--directory", worktree, "dist", f"ARCHITECTURES={' '.join(architectures)}"
        )
        lines = (worktree / "dist" / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
        return {name: checksum for checksum, name in (line.split() for line in lines)}
    finally:
        read_output("git", "worktree", "remove", "--force", worktree)


if __name__ == "__main__":
    main(sys.argv[1:] or ["x86_64"])
