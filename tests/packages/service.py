#!/usr/bin/env python3
"""Boots systemd on fresh systems, and starts gpumon's service there in the same way as users.

    tests/packages/service.py [SYSTEM...]
    tests/packages/service.py --here PROGRAM

Runs as root. By default, the output of `make dist` is installed as a Debian package. With --here,
the system is a temporary overlay of this machine, with this program and the units of
deploy/systemd. The GPUs are those of the fake NVML library.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from command import ROOT, read_output
from roots import HERE, SYSTEMS, make_root

#: The systems whose systemd supports control groups v2 and that run on this processor.
BOOTED = [system for system in SYSTEMS if system.name in ("debian-12", "debian-13")]
#: A script that boots in namespaces: a temporary overlay over the root, only loopback as network,
#: and no real devices.
BOOT = r"""
layer=$1
mount -t tmpfs -o mode=755 tmpfs "$layer"
mkdir "$layer/upper" "$layer/work" "$layer/root"
mount -t overlay -o "lowerdir=$2,upperdir=$layer/upper,workdir=$layer/work" overlay "$layer/root"
cd "$layer/root"
cp -a "$3/." .
mount -t proc proc proc
mount -t sysfs -o ro sysfs sys
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 tmpfs run
mount -t tmpfs tmpfs tmp
mount --rbind /dev dev
touch opt/said; mount --bind "$4" opt/said
ip link set lo up
[ ! -e opt/gpumon.deb ] || chroot . dpkg -i /opt/gpumon.deb > /dev/null
exec env -i container=gpumon PATH=/usr/sbin:/usr/bin:/sbin:/bin \
    chroot . /lib/systemd/systemd --unit=gpumon-check.target
"""
CHECK = """\
[Service]
Type=oneshot
ExecStart=/bin/sh -eu /opt/service.sh
StandardOutput=append:/opt/said
StandardError=append:/opt/said
ExecStopPost=/bin/sh -c 'echo "ended: $SERVICE_RESULT" >> /opt/said'
ExecStopPost=/bin/systemctl poweroff --force --force
"""
TARGET = """\
[Unit]
Requires=sysinit.target gpumon-check.service
"""
FAKE = """\
[Service]
Environment=GPUMON_NVML_LIB=/opt/libfake_nvml.so GPUMON_FAKE_NVML_SCENARIO=/opt/scenario.toml
"""
#: Units that would access devices or networks of this machine.
MASKED = [
    "systemd-udevd",
    "systemd-udev-trigger",
    "systemd-networkd",
    "systemd-resolved",
    "systemd-timesyncd",
]
LIMIT_S = 300


def main(arguments: list[str]) -> None:
    read_output("cargo", "build", "--quiet", "--package", "fake-nvml")
    if arguments[:1] == ["--here"]:
        program = Path(arguments[1])
        check_installation(lambda files: copy_units(files, program), "this machine", Path("/"))
        return
    known = {system.name: system for system in BOOTED}
    unknown = [name for name in arguments if name not in known]
    if unknown:
        sys.exit(f"there is no system {unknown[0]}; the systems are {', '.join(known)}")
    for system in [known[name] for name in arguments] or BOOTED:
        make_root(system)
        (package,) = (ROOT / "dist").glob(f"gpumon_*_{system.debian_architecture}.deb")
        check_installation(
            lambda files, package=package: shutil.copy(package, files / "opt/gpumon.deb"),
            system.name,
            system.root,
        )


def copy_units(files: Path, program: Path) -> None:
    units = files / "usr/lib/systemd/system"
    units.mkdir(parents=True)
    for unit in (ROOT / "deploy" / "systemd").iterdir():
        shutil.copy(unit, units)
    (files / "usr/bin").mkdir(parents=True)
    shutil.copy(program, files / "usr/bin/gpumon")


def check_installation(add, name: str, root: Path) -> None:
    """Boot a system that consists of `root` and the files that `add` creates in a folder, and test
    the service. Exit if a check fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        layer, files, said = Path(folder, "layer"), Path(folder, "files"), Path(folder, "said")
        units = files / "etc/systemd/system"
        for path in (layer, files / "opt", units / "gpumon.service.d"):
            path.mkdir(parents=True)
        said.touch()
        shutil.copy(HERE / "service.sh", files / "opt")
        shutil.copy(ROOT / "target" / "debug" / "libfake_nvml.so", files / "opt")
        (files / "opt/scenario.toml").write_text("gpus = 2\n", encoding="utf-8")
        (units / "gpumon.service.d/fake.conf").write_text(FAKE, encoding="utf-8")
        (units / "gpumon-check.service").write_text(CHECK, encoding="utf-8")
        (units / "gpumon-check.target").write_text(TARGET, encoding="utf-8")
        for unit in MASKED:
            (units / f"{unit}.service").symlink_to("/dev/null")
        add(files)
        # The files that replace a package here must belong to root, like all files of a package.
        folder_of_all = [
            "unshare",
            "--mount",
            "--net",
            "--pid",
            "--cgroup",
            "--uts",
            "--ipc",
            "--fork",
            "--kill-child",
        ]
        command = [*folder_of_all, "sh", "-euc", BOOT, "sh", *map(str, (layer, root, files, said))]
        try:
            booted = subprocess.run(
                command, capture_output=True, text=True, timeout=LIMIT_S, check=False
            )
            console = booted.stdout + booted.stderr
        except subprocess.TimeoutExpired:
            console = f"the test did not end within {LIMIT_S} s"
        console_log = said.read_text(encoding="utf-8")
    passed = "ended: success" in console_log
    print(f"{name}: {'passed' if passed else 'FAILED'}", flush=True)
    print(
        "".join(
            f"    {line}\n"
            for line in console_log.splitlines()
            if not passed or line.startswith("* ")
        ),
        end="",
        flush=True,
    )
    if not passed:
        sys.exit(console[-3000:])


if __name__ == "__main__":
    main(sys.argv[1:])
