#!/usr/bin/env python3
"""Runs uv, which builds and installs Python packages.

tools/uv.py ARGUMENT...
"""

from __future__ import annotations

import os
import subprocess
import sys


def run_uv(*arguments: str) -> None:
    """Run uv with the system's certificates and the package index of pip, and exit if it fails."""
    environment = {"UV_NATIVE_TLS": "1", **os.environ}
    if index := os.environ.get("PIP_INDEX_URL"):
        environment.setdefault("UV_DEFAULT_INDEX", index)
    done = subprocess.run(["uv", *arguments], env=environment, check=False)
    if done.returncode != 0:
        sys.exit(done.returncode)


if __name__ == "__main__":
    run_uv(*sys.argv[1:])
