#!/usr/bin/env python3
"""Creates virtual environments, and builds and installs the wheel, with uv.

    tools/uv.py environment FOLDER REQUIREMENTS [LEAN]
    tools/uv.py build-wheel VENV WHEELS
    tools/uv.py install-wheel VENV WHEELS

`environment` creates a virtual environment with the packages of a requirements file, for the Python
that runs this program. The packages in LEAN are installed without their dependencies.
`build-wheel` builds a wheel for the Python of a virtual environment. `install-wheel` installs the
newest wheel of a folder, with the packages for its panel, into a virtual environment.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def create_environment(folder: str, requirements: str, lean: str | None = None) -> None:
    run_uv("venv", "--clear", "--seed", "--python", sys.executable, folder)
    run_uv("pip", "install", "--python", folder, "--requirement", requirements)
    if lean:
        run_uv("pip", "install", "--python", folder, "--no-deps", "--requirement", lean)


def build_wheel(venv: str, folder: str) -> None:
    run_uv("build", "--wheel", "--python", venv, "--out-dir", folder)


def install_wheel(venv: str, folder: str) -> None:
    wheels = sorted(
        Path(folder).glob("jupyterlab_gpumon-*.whl"), key=lambda path: path.stat().st_mtime
    )
    if not wheels:
        sys.exit(f"there is no wheel in {folder}; run `make wheel`")
    # uv would not install a wheel whose version is already installed. The other package called
    # gpumon is also removed, because it has files of the same names.
    run_uv("pip", "uninstall", "--python", venv, "gpumon", "jupyterlab-gpumon")
    run_uv("pip", "install", "--python", venv, f"{wheels[-1]}[jupyter]")


def run_uv(*arguments: str) -> None:
    """Run uv with the system's certificates and the package index of pip, and exit if it fails."""
    environment = {"UV_NATIVE_TLS": "1", **os.environ}
    if index := os.environ.get("PIP_INDEX_URL"):
        environment.setdefault("UV_DEFAULT_INDEX", index)
    done = subprocess.run(["uv", *arguments], env=environment, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)


#: The functions by command.
COMMANDS = {
    "environment": create_environment,
    "build-wheel": build_wheel,
    "install-wheel": install_wheel,
}

if __name__ == "__main__":
    command, *arguments = sys.argv[1:] or [""]
    most = 3 if command == "environment" else 2
    if command not in COMMANDS or not 2 <= len(arguments) <= most:
        sys.exit(
            "usage: tools/uv.py environment FOLDER REQUIREMENTS [LEAN], or tools/uv.py "
            "build-wheel|install-wheel VENV WHEELS"
        )
    COMMANDS[command](*arguments)
