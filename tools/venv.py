#!/usr/bin/env python3
"""Creates a virtual environment with the packages of a requirements file, for the Python that runs
this program.

    tools/venv.py FOLDER REQUIREMENTS [LEAN]

The packages in LEAN are installed without their dependencies.
"""

from __future__ import annotations

import sys

from uv import run_uv


def main(folder: str, requirements: str, lean: str | None = None) -> None:
    run_uv("venv", "--clear", "--seed", "--python", sys.executable, folder)
    run_uv("pip", "install", "--python", folder, "--requirement", requirements)
    if lean:
        run_uv("pip", "install", "--python", folder, "--no-deps", "--requirement", lean)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: tools/venv.py FOLDER REQUIREMENTS [LEAN]")
    main(*sys.argv[1:])
