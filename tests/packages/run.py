#!/usr/bin/env python3
"""Installs the output of `make dist` on fresh systems without network, and tests it.

    tests/packages/run.py [SYSTEM...]

Runs as root, with the programs of `tools/need.py packages`. Wheel, Debian package and archive must
work without further steps on every system with glibc. On a system with musl, they must fail with an
explanation.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

from command import ROOT
from roots import HERE, SYSTEMS, System, make_root

#: A script that runs a test in namespaces. The test sees the root file system with a temporary
#: overlay, dist/, this folder, and only loopback as network.
ENTER = r"""
mount -t tmpfs -o mode=755 tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
mkdir -p "$1/root/dist" "$1/root/checks"
mount --bind "$3" "$1/root/dist"
mount --bind "$4" "$1/root/checks"
mount -t proc proc "$1/root/proc"
ip link set lo up
exec env -i PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 \
    chroot "$1/root" sh -eu "/checks/$5" "$6"
"""
#: The time after which a test counts as hanging.
LIMIT_S = 600


def main(names: list[str]) -> None:
    known = {system.name: system for system in SYSTEMS}
    unknown = [name for name in names if name not in known]
    if unknown:
        sys.exit(f"there is no system {unknown[0]}; the systems are {', '.join(known)}")
    dist = ROOT / "dist"
    if not list(dist.glob("*.whl")):
        sys.exit("dist/ has no wheel: run `make dist` first")
    systems = [known[name] for name in names] or SYSTEMS
    failed = [system.name for system in systems if not run_tests(system, dist)]
    print(
        f"{len(systems) - len(failed)} of {len(systems)} systems passed"
        + "".join(f"; failed: {name}" for name in failed)
    )
    sys.exit(1 if failed else 0)


def run_tests(system: System, dist: Path) -> bool:
    make_root(system)
    begun = time.monotonic()
    with tempfile.TemporaryDirectory() as layer:
        command = [
            "unshare",
            "--mount",
            "--net",
            "--pid",
            "--fork",
            "--kill-child",
            "sh",
            "-euc",
            ENTER,
            "sh",
            layer,
        ]
        command += [str(system.root), str(dist), str(HERE), system.check, system.architecture]
        try:
            done = subprocess.run(
                command,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=LIMIT_S,
                check=False,
            )
            code, said = done.returncode, done.stdout
        except subprocess.TimeoutExpired as error:
            code, said = (
                -1,
                f"{(error.stdout or b'').decode()}\nthe test did not end within {LIMIT_S} s",
            )
    print(
        f"{system.name}: {'passed' if code == 0 else 'FAILED'} in {time.monotonic() - begun:.0f} s",
        flush=True,
    )
    print(
        "".join(
            f"    {line}\n" for line in said.splitlines() if code != 0 or line.startswith("* ")
        ),
        end="",
        flush=True,
    )
    return code == 0


if __name__ == "__main__":
    main(sys.argv[1:])
