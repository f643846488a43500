#!/usr/bin/env python3
"""Installs the newest wheel of a folder, with what its panel needs, into a virtual environment.

    tools/install_wheel.py VENV WHEELS
"""

import subprocess
import sys
from pathlib import Path


def main(venv: str, folder: str) -> None:
    wheels = sorted(Path(folder).glob("jupyterlab_gpumon-*.whl"), key=lambda path: path.stat().st_mtime)
    if not wheels:
        sys.exit(f"there is no wheel in {folder}; run `make wheel`")
    pip = [f"{venv}/bin/python", "-m", "pip", "--disable-pip-version-check"]
    # pip would skip a wheel of the same version. The other package gpumon has files of the same names.
    subprocess.run([*pip, "uninstall", "--yes", "gpumon", "jupyterlab-gpumon"], check=True)
    subprocess.run([*pip, "install", f"{wheels[-1]}[jupyter]"], check=True)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: tools/install_wheel.py VENV WHEELS")
    try:
        main(*sys.argv[1:])
    except subprocess.CalledProcessError as error:
        sys.exit(error.returncode)
