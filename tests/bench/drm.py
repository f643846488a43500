#!/usr/bin/env python3
"""Measures the cost of reading AMD's GPUs: `python3 tests/bench/drm.py [--only NAME]`.

Needs `cargo build --release -p gpumon -p fake-drm`. The GPUs are a tree of files, which are cheaper
to read than a driver. The 2,000 processes are real, with 20 open files each.
"""

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path

from machine import ROOT
from measure import Program, wait_until_reachable
from report import missed, print_row

PORT = 19133
PROCESSES = 2000
DESCRIPTORS = 20


class Tree:
    """The files of a machine with eight MI300X."""

    def __init__(self, folder):
        self.folder = Path(folder) / "tree"

    def serve(self, procfs, program):
        command = [program, "--source", "amd", "serve", "--no-control"]
        roots = ["--sysfs", self.folder / "sys", "--procfs", procfs]
        listen = ["--listen", f"127.0.0.1:{PORT}"]
        started = Program([*command, *listen, *roots], {"GPUMON_NO_JOIN": "1"})
        wait_until_reachable(PORT, "/readyz")
        return started


@contextmanager
def make_eight_gpus(writer):
    with tempfile.TemporaryDirectory() as folder:
        tree = Tree(folder)
        subprocess.run([writer, "mi300x", tree.folder], check=True, capture_output=True)
        yield tree


@contextmanager
def start_processes():
    """Starts sleeping processes. They are children of one process, which ends with the `with`
    block.
    """
    script = f"""
import os, signal
files = [open('/dev/null') for _ in range({DESCRIPTORS - 3})]
for _ in range({PROCESSES}):
    if os.fork() == 0:
        signal.pause()
print('ready', flush=True)
signal.pause()
"""
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, start_new_session=True
    )
    parent.stdout.readline()
    try:
        yield
    finally:
        os.killpg(parent.pid, signal.SIGKILL)
        parent.wait()


def measure_gpus(arguments):
    with make_eight_gpus(arguments.writer) as tree:
        with tree.serve(tree.folder / "proc", arguments.program) as program:
            time.sleep(5)
            percent = program.cpu_percent(arguments.seconds)
    what = "CPU of serve and collect, 8 AMD GPUs, 4 processes each"
    print_row(what, "<= 0.3 % of a core", f"{percent:.3f} %", percent <= 0.3)


def measure_processes(arguments):
    with make_eight_gpus(arguments.writer) as tree, start_processes():
        with tree.serve("/proc", arguments.program) as program:
            # gpumon checks new processes more often than old ones, so the first seconds are
            # measured separately.
            first = program.cpu_percent(30)
            percent = program.cpu_percent(arguments.seconds)
    what = "  the same with 2,000 processes, 20 open files each"
    print_row(what, "<= 1 % of a core", f"{percent:.3f} %", percent <= 1)
    print_row("  in the first 30 s", "", f"{first:.3f} %", None)


BENCHES = {"gpus": measure_gpus, "processes": measure_processes}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="duration of each measurement")
    parser.add_argument("--program", default=ROOT / "target/release/gpumon", help="path of gpumon")
    parser.add_argument(
        "--writer", default=ROOT / "target/release/fake-drm", help="path of fake-drm"
    )
    parser.add_argument(
        "--only", choices=BENCHES, action="append", help="only run this measurement"
    )
    arguments = parser.parse_args()
    for name in arguments.only or BENCHES:
        BENCHES[name](arguments)
    sys.exit(f"over the target: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
