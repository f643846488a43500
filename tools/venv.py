#!/usr/bin/env python3
"""Makes a virtual environment with the packages of a requirements file.

    tools/venv.py FOLDER REQUIREMENTS [LEAN]

What LEAN names is installed without what it depends on.
"""

from __future__ import annotations

import subprocess
import sys


def main(folder: str, requirements: str, lean: str | None = None) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = [f"{folder}/bin/python", "-m", "pip", "install", "--disable-pip-version-check"]
    subprocess.run([*pip, "--requirement", requirements], check=True)
    if lean:
        subprocess.run([*pip, "--no-deps", "--requirement", lean], check=True)


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4):
        sys.exit("usage: tools/venv.py FOLDER REQUIREMENTS [LEAN]")
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
