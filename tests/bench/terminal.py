#!/usr/bin/env python3
"""What the table and `gpumon top` cost, next to nvitop, nvtop, gpustat and nvidia-smi where those are installed.

    python3 tests/bench/terminal.py [--gpumon PATH] [--seconds 60] [--rounds 15]

Reads the GPUs of this machine. `make bench` runs the same over the fake library.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time

from measure import Program
from report import missed, row
from screen import Screen

TERMINAL = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
#: What shows the GPUs once, and what shows them until it is ended.
ONCE = {"gpustat": ["gpustat", "--show-all"], "nvitop": ["nvitop", "--once"], "nvidia-smi": ["nvidia-smi"]}
LIVE = {"nvitop": ["nvitop", "--interval", "1"], "nvtop": ["nvtop", "--delay", "10"]}


def installed(peers):
    return {name: command for name, command in peers.items() if shutil.which(command[0])}


def once_ms(command, environment):
    """Milliseconds from the start of a command to its end, into a pipe: gpustat asks a terminal questions. Those of CPU among them."""
    began, used = time.perf_counter(), os.times()
    subprocess.run(command, env={**os.environ, **environment}, capture_output=True)
    now = os.times()
    cpu = now.children_user + now.children_system - used.children_user - used.children_system
    return (time.perf_counter() - began) * 1000, cpu * 1000


def live(command, environment, seconds):
    """Percent of a core, and MB, of a program that draws on a terminal."""
    with Screen(120, 40) as screen, Program(command, environment, stdin=screen.inside, stdout=screen.inside) as program:
        time.sleep(5)
        percent, rss = program.cpu_percent(seconds), program.rss_mb()
        if program.process.poll() is not None:
            sys.exit(f"{command[0]} ended by itself")
        return percent, rss


def run(gpumon, environment, seconds, rounds=15):
    environment = {**environment, **TERMINAL}
    commands = {"gpumon": [gpumon, "--no-daemon"], **installed(ONCE)}
    # In turn, so that what else the machine does strikes all alike.
    took = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            took[name].append(once_ms(command, environment))
    wall, cpu = ({name: statistics.median(times[at] for times in all) for name, all in took.items()} for at in (0, 1))
    row("the table, once, from start to end", "<= 10 ms", f"{wall['gpumon']:.1f} ms, CPU {cpu['gpumon']:.1f} ms", wall["gpumon"] <= 10)
    for name in installed(ONCE):
        row(f"  the same of {name}", "", f"{wall[name]:.1f} ms ({wall[name] / wall['gpumon']:.1f} x), CPU {cpu[name]:.1f} ms", None)
    percent, rss = live([gpumon, "top", "--no-daemon", "--interval-ms", "1000"], environment, seconds)
    row("gpumon top with its own sampler, 1 Hz, 120x40", "<= 0.2 % of a core", f"{percent:.3f} %", percent <= 0.2)
    row("  RSS", "<= 14 MB", f"{rss:.1f} MB", rss <= 14)
    for name, command in installed(LIVE).items():
        theirs, memory = live(command, environment, seconds)
        row(f"  the same of {name}", "", f"{theirs:.3f} % ({theirs / percent:.1f} x), {memory:.1f} MB", None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpumon", default="gpumon")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    run(arguments.gpumon, {}, arguments.seconds, arguments.rounds)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
