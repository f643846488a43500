#!/usr/bin/env python3
"""Compares gpumon's readings of AMD's gpu_metrics with those of amdgpu_top. Both programs read the
same files.

    tests/conformance/amdgpu_top.py [--amdgpu-top PATH] [--gpumon PATH] [--fake-drm PATH] [TABLE...]

Needs root, because the files of a fake machine replace /sys in a mount namespace. Tables of real
cards can be passed as files. amdgpu_top supports tables of the versions up to 1.5, 2.4 and 3.0. Its
other readings come from the driver and not from files, so they are not compared.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Machines with tables that amdgpu_top supports.
SCENARIOS = ["laptop", "apu"]
#: The PCIe generation for each link speed in tenths of GT/s.
GENERATIONS = {25: 1, 50: 2, 80: 3, 160: 4, 320: 5, 640: 6}
#: Each item has the name of a reading, the fields that may contain it, and whether 0 means that
#: there is no value. The first field that is present counts.
COMPARED = [
    ("power.draw_watts", ["average_socket_power"], False),
    ("temperature.gpu_celsius", ["temperature_edge", "temperature_gfx"], False),
    ("temperature.junction_celsius", ["temperature_hotspot"], False),
    ("temperature.memory_celsius", ["temperature_mem"], True),
    ("clocks.sm_mhz", ["current_gfxclk", "average_gfxclk_frequency"], False),
    ("clocks.memory_mhz", ["current_uclk", "average_uclk_frequency"], False),
    ("clocks.soc_mhz", ["current_socclk", "average_socclk_frequency"], False),
    ("clocks.fabric_mhz", ["current_fclk", "average_fclk_frequency"], False),
    ("clocks.video_mhz", ["current_vclk", "average_vclk_frequency"], False),
    ("pcie.width", ["pcie_link_width"], False),
    ("pcie.generation", ["pcie_link_speed"], False),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--amdgpu-top", default=shutil.which("amdgpu_top"))
    parser.add_argument("--gpumon", default=ROOT / "target/debug/gpumon")
    parser.add_argument("--fake-drm", default=ROOT / "target/debug/fake-drm")
    parser.add_argument("tables", nargs="*", type=Path, metavar="TABLE")
    arguments = parser.parse_args()
    if arguments.amdgpu_top is None:
        sys.exit(
            "amdgpu_top is missing: run `cargo install amdgpu_top`, or pass its path with "
            "--amdgpu-top"
        )
    compared, differences = 0, []
    for name, table in read_tables(arguments):
        with tempfile.TemporaryDirectory() as folder:
            machine = Path(folder) / "machine"
            device = make_machine(arguments.fake_drm, machine, "apu", table)
            theirs = read_amdgpu_top(arguments.amdgpu_top, machine, device)
            ours = read_gpumon(arguments.gpumon, machine)
        for reading, expected in expected_readings(theirs):
            compared += 1
            if (found := find_reading(ours, reading)) != expected:
                differences.append(f"{name}: {reading} is {found}, but {expected} in amdgpu_top")
    print(*differences, sep="\n", end="\n" if differences else "")
    print(f"{compared} readings compared, {len(differences)} differ")
    sys.exit(bool(differences) or compared == 0)


def read_tables(arguments: argparse.Namespace) -> Iterator[tuple[str, bytes]]:
    for scenario in SCENARIOS:
        with tempfile.TemporaryDirectory() as folder:
            machine = Path(folder) / "machine"
            make_machine(arguments.fake_drm, machine, scenario)
            for device in sorted((machine / "sys/bus/pci/drivers/amdgpu").iterdir()):
                yield f"{scenario} {device.name}", (device / "gpu_metrics").read_bytes()
    for table in arguments.tables:
        yield table.name, table.read_bytes()


def make_machine(program: str, machine: Path, scenario: str, table: bytes | None = None) -> str:
    """Writes a machine whose card has only a table, and returns the address of the card."""
    subprocess.run([program, scenario, machine], check=True, capture_output=True)
    device = next((machine / "sys/bus/pci/drivers/amdgpu").iterdir())
    if table is not None:
        shutil.rmtree(device / "hwmon")
        (device / "gpu_busy_percent").unlink()
        (device / "gpu_metrics").write_bytes(table)
    return device.name


def read_amdgpu_top(program: str, machine: Path, address: str) -> dict:
    script = 'mount --bind "$1" /sys && exec "$2" -gm -J'
    command = ["unshare", "--mount", "sh", "-c", script, "sh", str(machine / "sys"), str(program)]
    cards = json.loads(subprocess.check_output(command))
    return next(card for card in cards if card["device_path"]["pci"] == address)["gpu_metrics"]


def read_gpumon(program: str, machine: Path) -> dict:
    roots = {"GPUMON_SYSFS": str(machine / "sys"), "GPUMON_PROCFS": str(machine / "proc")}
    environment = {**os.environ, "GPUMON_NO_JOIN": "1", **roots}
    command = [program, "--source", "amd", "--no-daemon", "--json"]
    return json.loads(subprocess.check_output(command, env=environment))["sample"]["gpus"][0]


def expected_readings(theirs: dict) -> Iterator[tuple[str, float | None]]:
    """Yields the readings that gpumon should report, computed from amdgpu_top's raw numbers."""
    is_apu = theirs["header"]["format_revision"] > 1
    for reading, fields, is_zero_missing in COMPARED:
        raw = next((theirs[field] for field in fields if theirs.get(field) is not None), None)
        if raw is None or (raw == 0 and is_zero_missing):
            continue
        if reading == "pcie.generation":
            yield reading, GENERATIONS[raw]
        elif is_apu and reading.startswith("power"):
            yield reading, raw / 1000
        elif is_apu and reading.startswith("temperature"):
            yield reading, raw / 100
        else:
            yield reading, raw


def find_reading(sample: dict, path: str) -> float | None:
    outer, inner = path.split(".")
    value = sample[outer].get(inner)
    return value if isinstance(value, int | float) else None


if __name__ == "__main__":
    main()
