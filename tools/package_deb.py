"""Creates the Debian package of an archive from tools/dist.py, next to the archive.

The program is the same as in the archive, byte for byte. Cargo.toml lists the other contents of the
package.
"""

from __future__ import annotations

import gzip
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from email.utils import formatdate
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: The folder in which Cargo.toml expects the archive's files while a package is created.
UNPACKED = ROOT / "dist" / "deb"
#: Files that the package lacks: Debian already has this license, and the README is for users of the
#: archive.
LEFT_OUT = {"LICENSE", "README.md"}


def build_package(archive: Path, architecture: str, version: str, seconds: int) -> None:
    """Create the Debian package of an archive. It has the version in Cargo.toml, and `seconds` as
    its time.
    """
    unpack(archive)
    # Debian sorts 1.0~rc.1 before 1.0. The archive's name has PyPI's notation 1.0rc1.
    version = f"{version.replace('-', '~', 1)}-1"
    (UNPACKED / "changelog").write_text(make_changelog(version, seconds), encoding="utf-8")
    command = [
        "cargo",
        "deb",
        "--no-build",
        "--no-strip",
        "--compress-type",
        "xz",
        "--deb-version",
        version,
    ]
    command += ["--target", f"{architecture}-unknown-linux-gnu", "--output", str(archive.parent)]
    env = {**os.environ, "SOURCE_DATE_EPOCH": str(seconds)}
    made = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.DEVNULL, check=False)
    shutil.rmtree(UNPACKED)
    if made.returncode != 0:
        sys.exit(f"`{' '.join(command)}` failed with code {made.returncode}; its output is above")


def unpack(archive: Path) -> None:
    shutil.rmtree(UNPACKED, ignore_errors=True)
    with tarfile.open(archive) as packed:
        for member in packed:
            # The archive has a single top folder, which is removed from the names.
            _, _, member.name = member.name.partition("/")
            if member.isfile() and member.name not in LEFT_OUT:
                if "/" not in member.name or member.name.startswith(("licenses/", "sboms/")):
                    member.name = f"doc/{Path(member.name).name}"
                packed.extract(member, UNPACKED)
    (UNPACKED / "doc").mkdir(exist_ok=True)
    (UNPACKED / "doc" / "changelog.gz").write_bytes(
        compress_gzip((ROOT / "CHANGELOG.md").read_bytes(), 0)
    )


def compress_gzip(content: bytes, seconds: int) -> bytes:
    """Compress with a header that is the same in every Python version, unlike that of
    `gzip.compress`.
    """
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", fileobj=packed, mtime=seconds) as file:
        file.write(content)
    return packed.getvalue()


def make_changelog(version: str, seconds: int) -> str:
    """Return Debian's changelog of the package. Changes for users are in a separate file."""
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    (maintainer,) = re.findall(r'^maintainer = "(.+)"$', manifest, re.MULTILINE)
    date = formatdate(seconds, localtime=False).replace("-0000", "+0000")
    return f"""\
gpumon ({version}) unstable; urgency=medium

  * gpumon {version.removesuffix("-1")}. Its changes are in changelog.gz.

 -- {maintainer}  {date}
"""
