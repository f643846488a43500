#!/usr/bin/env python3
"""Builds the container image with buildah, and runs it with simulated GPUs and with the fake NVML
library.

If no registry can be reached, the root file system of Debian 12 from the package tests replaces the
base image.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

from command import ROOT, read_output
from roots import ROOTS, SYSTEMS, make_root

CONTAINERFILE = ROOT / "deploy" / "container" / "Containerfile"
BASE = re.search(r"^FROM (\S+)$", CONTAINERFILE.read_text(encoding="utf-8"), re.MULTILINE)[1]
STORE = ROOTS / "images"
#: With these options, buildah needs neither namespaces nor overlays.
OPTIONS = ["--root", STORE / "store", "--runroot", STORE / "run", "--storage-driver", "vfs"]
NVML = ROOT / "target" / "debug" / "libfake_nvml.so"
NVML_INSIDE = "/usr/lib/x86_64-linux-gnu/libnvidia-ml.so.1"


def main() -> None:
    if not NVML.exists():
        sys.exit("the fake NVML library is missing: build it with `make fake-library`")
    # Each run starts without the images and containers of earlier runs. Only the base image is
    # worth keeping.
    shutil.rmtree(STORE, ignore_errors=True)
    STORE.mkdir(parents=True)
    make_base_image()
    run_buildah(
        "build", "--isolation", "chroot", "--file", CONTAINERFILE, "--tag", "gpumon", ROOT / "dist"
    )
    container = run_buildah("from", "localhost/gpumon")
    tried = [
        ("simulated GPUs", [], ["--source", "sim"], "simulated .*H200"),
        ("the fake NVML library", ["--volume", f"{NVML}:{NVML_INSIDE}:ro"], [], "driver .*H200"),
    ]
    for what, options, arguments, wanted in tried:
        said = run_buildah(
            "run", "--isolation", "chroot", *options, container, "--", "gpumon", *arguments
        )
        if not re.search(wanted, said):
            sys.exit(f"{said}\nthe output of the image with {what} does not match `{wanted}`")
    if (
        run_buildah("run", "--isolation", "chroot", container, "--", "id", "--user", "--name")
        != "gpumon"
    ):
        sys.exit("the image does not run gpumon as the user gpumon")
    shutil.rmtree(STORE)
    print(f"image: built from {BASE}, runs with {tried[0][0]} and {tried[1][0]}")


def make_base_image() -> None:
    (system,) = (system for system in SYSTEMS if system.name == "debian-12")
    make_root(system)
    container = run_buildah("from", "scratch")
    packed = STORE / "base.tar"
    read_output("tar", "--create", "--file", packed, "--directory", system.root, ".")
    run_buildah("add", "--quiet", container, packed, "/")
    packed.unlink()
    run_buildah("commit", "--quiet", container, BASE)
    run_buildah("rm", container)


def run_buildah(*arguments: str | Path) -> str:
    return read_output("buildah", *OPTIONS, *arguments)


if __name__ == "__main__":
    main()
