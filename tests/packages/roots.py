"""Root file systems of Debian and Ubuntu for test installations. mmdebstrap creates each of them
once, in target/roots.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from command import ROOT

HERE = Path(__file__).parent
ROOTS = ROOT / "target" / "roots"
DEBIAN = "http://deb.debian.org/debian"
UBUNTU = "http://archive.ubuntu.com/ubuntu"
#: Arguments with which pip selects maturin for a system with musl. An installer needs maturin to
#: build the source distribution.
MATURIN_FOR_MUSL = (
    "--only-binary=:all: --platform=musllinux_1_1_x86_64 --python-version=3.11 'maturin>=1.16,<2'"
)


@dataclass(frozen=True)
class System:
    """A system for test installations, with the packages that its users have installed and the
    script that tests gpumon on it.
    """

    name: str
    suite: str
    packages: str
    sources: tuple[str, ...] = (DEBIAN,)
    debian_architecture: str = "amd64"
    options: tuple[str, ...] = ()
    check: str = "check.sh"

    @property
    def architecture(self) -> str:
        return {"amd64": "x86_64", "arm64": "aarch64"}[self.debian_architecture]

    @property
    def root(self) -> Path:
        return ROOTS / self.name


SYSTEMS = [
    System("debian-11", "bullseye", "python3-venv,systemd,man-db"),
    System("debian-12", "bookworm", "python3-venv,systemd,man-db"),
    System("debian-13", "trixie", "python3-venv,systemd,man-db"),
    System(
        *("ubuntu-20.04", "focal", "python3.9-venv,systemd,man-db"),
        # The packages are trusted without a signature check, because Debian does not have Ubuntu's
        # keys. Nothing from these root file systems is used elsewhere.
        sources=tuple(
            f"deb [trusted=yes] {UBUNTU} {suite} main universe"
            for suite in ("focal", "focal-updates")
        ),
    ),
    System("debian-12-arm64", "bookworm", "python3-venv,man-db", debian_architecture="arm64"),
    System(
        *(
            "debian-12-musl",
            "bookworm",
            "gcc,make,libc6-dev,musl-tools,bzip2,xz-utils,busybox-static,python3-pip-whl",
        ),
        sources=tuple(f"{kind} {DEBIAN} bookworm main" for kind in ("deb", "deb-src")),
        options=(
            f"--customize-hook=copy-in {HERE / 'musl.sh'} /",
            '--customize-hook=chroot "$1" sh /musl.sh',
            f"--customize-hook={sys.executable} -m pip download --quiet --no-deps --dest "
            f'"$1/wheels" {MATURIN_FOR_MUSL}',
        ),
        check="refuse.sh",
    ),
]


def make_root(system: System) -> None:
    if system.root.exists():
        return
    print(f"{system.name}: creating the system (takes minutes, only once)", flush=True)
    ROOTS.mkdir(parents=True, exist_ok=True)
    # An interrupted installation must not be used as a complete root file system.
    unfinished = ROOTS / f".{system.name}"
    shutil.rmtree(unfinished, ignore_errors=True)
    command = [
        "mmdebstrap",
        "--variant=minbase",
        "--format=dir",
        "--skip=check/qemu",
        *system.options,
    ]
    command += [f"--arch={system.debian_architecture}", f"--include={system.packages}"]
    command += [system.suite, str(unfinished), *system.sources]
    made = subprocess.run(command, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        sys.exit(
            f"{made.stderr[-3000:]}\n{system.name}: mmdebstrap failed; check that the mirror can "
            f"be reached"
        )
    unfinished.rename(system.root)
