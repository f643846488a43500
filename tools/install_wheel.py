#!/usr/bin/env python3
"""Installs the newest wheel of a folder, with the packages for its panel, into a virtual
environment.

tools/install_wheel.py VENV WHEELS
"""

import sys
from pathlib import Path

from uv import run_uv


def main(venv: str, folder: str) -> None:
    wheels = sorted(
        Path(folder).glob("jupyterlab_gpumon-*.whl"), key=lambda path: path.stat().st_mtime
    )
    if not wheels:
        sys.exit(f"there is no wheel in {folder}; run `make wheel`")
    # uv would skip a wheel of the same version, and the other package called gpumon has files of
    # the same names.
    run_uv("pip", "uninstall", "--python", venv, "gpumon", "jupyterlab-gpumon")
    run_uv("pip", "install", "--python", venv, f"{wheels[-1]}[jupyter]")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: tools/install_wheel.py VENV WHEELS")
    main(*sys.argv[1:])
