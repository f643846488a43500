#!/usr/bin/env python3
"""Builds the wheel from the commit and from the source distribution in dist/, and compares them
byte for byte.

The source distribution contains the output of npm, so it is built without Node.js.
GPUMON_PROFILE=dev is faster.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import zipfile
from pathlib import Path

from command import ROOT, read_output


def main() -> None:
    sdists = list((ROOT / "dist").glob("jupyterlab_gpumon-*.tar.gz"))
    if len(sdists) != 1:
        sys.exit("dist/ has no source distribution: run `make dist` first")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commit = folder / "commit.tar"
        read_output("git", "archive", "--prefix=gpumon/", f"--output={commit}", "HEAD")
        environment = {
            name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"
        }
        environment["SOURCE_DATE_EPOCH"] = read_output("git", "log", "-1", "--format=%ct")
        from_commit = read_members(build_wheel(commit, folder, environment))
        # These programs take the place of Node.js and npm, and always fail. So a build that runs
        # one of them also fails.
        without = folder / "without"
        without.mkdir()
        for program in ("node", "npm", "npx"):
            (without / program).write_text(
                f"#!/bin/sh\necho '{program} must not be run' >&2\nexit 1\n", encoding="utf-8"
            )
            (without / program).chmod(0o755)
        environment["PATH"] = f"{without}:{os.environ['PATH']}"
        from_sdist = read_members(build_wheel(sdists[0], folder, environment))
    names = from_commit.keys() | from_sdist.keys()
    different = sorted(name for name in names if from_commit.get(name) != from_sdist.get(name))
    if different:
        sys.exit(
            f"the wheel from {sdists[0].name} differs from that of HEAD in "
            f"{', '.join(different)}: if dist/ is older, run `make dist`"
        )
    print(
        f"{sdists[0].name}: without Node.js, its wheel has the same {len(names)} files as that of "
        f"the commit"
    )


def build_wheel(source: Path, folder: Path, environment: dict[str, str]) -> Path:
    """Build the wheel of an archive of sources. The build always uses the same folder, because
    debug information contains the folder's name.
    """
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        read_output("tar", "--extract", "--file", source, "--directory", unpacked)
        (top,) = Path(unpacked).iterdir()
        place = top.rename(folder / "gpumon")
    wheels = folder / f"wheels-of-{source.stem}"
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--disable-pip-version-check",
        "--no-deps",
        "--wheel-dir",
        wheels,
    ]
    read_output(*command, place, env=environment)
    shutil.rmtree(place)
    (wheel,) = wheels.glob("*.whl")
    return wheel


def read_members(wheel: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(wheel) as packed:
        return {name: packed.read(name) for name in packed.namelist()}


if __name__ == "__main__":
    main()
