#!/usr/bin/env python3
"""Sees to it that the machine has what a build or a test needs: installs it, saying so, or says what to install.

    tools/need.py venv chromium rust-components

Packages are installed with apt-get, where that is there and this is root or sudo asks no password.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys

#: Browsers that speak the DevTools protocol, in the order of preference. The browser tests look for the same names.
CHROMIUMS = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]


def main(needs: list[str]) -> None:
    for need in needs:
        CHECKS[need]()


def venv() -> None:
    """Debian keeps a part of Python's own venv module in a package of its own."""
    if importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        install("python3-venv", f"Python {version} cannot make virtual environments")


def chromium() -> None:
    if os.environ.get("CHROMIUM") is None and not any(shutil.which(name) for name in CHROMIUMS):
        # Without a font, pages have no text.
        install("chromium fonts-dejavu-core", "the browser tests need Chromium")


def rust_components() -> None:
    missing = [name for name in ("rustfmt", "clippy") if not _runs("cargo", {"rustfmt": "fmt"}.get(name, name))]
    if not missing:
        return
    command = ["rustup", "component", "add", *missing]
    print(f"the checks need {' and '.join(missing)}: {' '.join(command)}", flush=True)
    if shutil.which("rustup") is None or subprocess.run(command, check=False).returncode != 0:
        sys.exit(f"{' and '.join(missing)} could not be added; install what your Rust has them in, then try again")


def install(packages: str, reason: str) -> None:
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") is None or (root and not _runs(*root, "true")):
        sys.exit(f"{reason}: install {packages} (on Debian: sudo apt-get install {packages}), then try again")
    print(f"{reason}: installing {packages} with apt-get", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for arguments in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *packages.split()]):
        command = [*root, "apt-get", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{done.stderr.strip()}\n`{' '.join(command)}` failed: install {packages} by hand, then try again")


def _runs(*command: str) -> bool:
    try:
        return subprocess.run([*command, "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


CHECKS = {"venv": venv, "chromium": chromium, "rust-components": rust_components}

if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in CHECKS]
    if unknown or len(sys.argv) < 2:
        sys.exit(f"usage: tools/need.py NAME..., with names of {', '.join(CHECKS)}")
    main(sys.argv[1:])
