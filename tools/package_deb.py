#!/usr/bin/env python3
"""Makes a Debian package of each archive that tools/dist.py has made, and puts it beside the archive.

    tools/package_deb.py dist/gpumon-VERSION-ARCH-linux.tar.gz...

The program is the one of the archive, byte for byte. What else is in the package is said in cli/Cargo.toml. The time in
it is SOURCE_DATE_EPOCH, or that of the last commit.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tarfile
from email.utils import formatdate
from pathlib import Path

from need import TOOLS, cargo_deb

ROOT = Path(__file__).resolve().parents[1]
#: Where cli/Cargo.toml expects the archive's files, while a package is made.
UNPACKED = ROOT / "dist" / "deb"
ARCHIVE = re.compile(r"gpumon-(?P<version>[^-]+)-(?P<architecture>x86_64|aarch64)-linux\.tar\.gz")
#: Not part of a package: Debian has this license already, and the other is for those who unpack the archive.
LEFT_OUT = {"LICENSE", "README.md"}


def package(archive: Path, seconds: int) -> Path:
    """Make the package of an archive and return its path."""
    named = ARCHIVE.fullmatch(archive.name) or sys.exit(f"{archive.name} is not named as tools/dist.py names an archive")
    unpack(archive)
    (UNPACKED / "changelog").write_text(changelog(named["version"], seconds), encoding="utf-8")
    command = ["cargo", "deb", "--no-build", "--no-strip", "--compress-type", "xz"]
    command += ["--target", f"{named['architecture']}-unknown-linux-gnu", "--output", str(archive.parent)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds)}
    made = subprocess.run(command, cwd=ROOT / "cli", env=env, stdout=subprocess.PIPE, text=True, check=False)
    shutil.rmtree(UNPACKED)
    if made.returncode != 0:
        sys.exit(f"`{' '.join(command)}` failed with code {made.returncode}; its own messages are above")
    return Path(made.stdout.strip().splitlines()[-1])


def unpack(archive: Path) -> None:
    shutil.rmtree(UNPACKED, ignore_errors=True)
    with tarfile.open(archive) as packed:
        for member in packed:
            # Below the one folder that all of it is in.
            _, _, member.name = member.name.partition("/")
            if member.isfile() and member.name not in LEFT_OUT:
                if "/" not in member.name or member.name.startswith(("licenses/", "sboms/")):
                    member.name = f"doc/{Path(member.name).name}"
                packed.extract(member, UNPACKED)
    news = gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), mtime=0)
    (UNPACKED / "doc").mkdir(exist_ok=True)
    (UNPACKED / "doc" / "changelog.gz").write_bytes(news)


def changelog(version: str, seconds: int) -> str:
    """Debian's own form, which tells of the package; what changes for users is in a file beside it."""
    manifest = (ROOT / "cli" / "Cargo.toml").read_text(encoding="utf-8")
    (maintainer,) = re.findall(r'^maintainer = "(.+)"$', manifest, re.MULTILINE)
    date = formatdate(seconds, localtime=False).replace("-0000", "+0000")
    return f"""\
gpumon ({version}-1) unstable; urgency=medium

  * gpumon {version}. Its changes are in changelog.gz.

 -- {maintainer}  {date}
"""


def committed() -> int:
    told = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    return int(told.stdout.strip() or sys.exit("set SOURCE_DATE_EPOCH: there is no commit to take the time from"))


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: tools/package_deb.py dist/gpumon-VERSION-ARCH-linux.tar.gz...")
    os.environ["PATH"] = f"{TOOLS / 'bin'}:{os.environ['PATH']}"
    cargo_deb()
    when = int(os.environ.get("SOURCE_DATE_EPOCH") or committed())
    for given in sys.argv[1:]:
        print(package(Path(given).resolve(), when))
