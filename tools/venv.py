#!/usr/bin/env python3
"""Makes a virtual environment with the packages of a requirements file.

    tools/venv.py FOLDER REQUIREMENTS
"""

import subprocess
import sys


def main(folder: str, requirements: str) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
    pip = [f"{folder}/bin/python", "-m", "pip", "install", "--disable-pip-version-check"]
    subprocess.run([*pip, "--requirement", requirements], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: tools/venv.py FOLDER REQUIREMENTS")
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
