#!/usr/bin/env python3
"""The cost of the table and of `gpumon top`, compared with that of other monitors that are
installed.

    python3 tests/bench/terminal.py [--gpumon PATH] [--seconds 60] [--rounds 15]

Reads the GPUs of this machine. `make bench` runs the same with the GPUs of the fake NVML library.
"""

import argparse
import os
import shutil
import statistics
import subprocess
import sys
import time

from measure import Program
from report import missed, print_row
from screen import Screen

TERMINAL = {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
#: Commands that print the GPUs once. The commands in `LIVE` show the GPUs until they are ended.
ONCE = {
    "gpustat": ["gpustat", "--show-all"],
    "nvitop": ["nvitop", "--once"],
    "nvidia-smi": ["nvidia-smi"],
}
LIVE = {"nvitop": ["nvitop", "--interval", "1"], "nvtop": ["nvtop", "--delay", "10"]}


def select_installed(peers):
    return {name: command for name, command in peers.items() if shutil.which(command[0])}


def measure_once(command, environment):
    """Returns the run time and the CPU time of a command, in milliseconds.

    The output goes into a pipe, because gpustat queries a terminal and waits for its answers.
    """
    began, used = time.perf_counter(), os.times()
    subprocess.run(command, env={**os.environ, **environment}, capture_output=True)
    wall, now = time.perf_counter() - began, os.times()
    cpu = now.children_user + now.children_system - used.children_user - used.children_system
    return wall * 1000, cpu * 1000


def measure_live(command, environment, seconds):
    """Returns the percent of a core and the MB of memory that a program uses while it draws on a
    terminal.
    """
    with Screen(120, 40) as screen:
        ends = {"stdin": screen.inside, "stdout": screen.inside}
        with Program(command, environment, **ends) as program:
            time.sleep(5)
            percent, rss = program.cpu_percent(seconds), program.rss_mb()
            if program.process.poll() is not None:
                sys.exit(f"{command[0]} exited during the measurement")
            return percent, rss


def compare_once(gpumon, environment, rounds):
    commands = {"gpumon": [gpumon, "--no-daemon"], **select_installed(ONCE)}
    # The commands take turns, so that other work on the machine slows down all of them equally.
    took = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            took[name].append(measure_once(command, environment))
    medians = {name: [statistics.median(of) for of in zip(*all)] for name, all in took.items()}
    for name, (wall, cpu) in medians.items():
        ratio = wall / medians["gpumon"][0]
        figures = f"{wall:.1f} ms, CPU {cpu:.1f} ms"
        if name == "gpumon":
            print_row("the table, once, from start to end", "<= 10 ms", figures, wall <= 10)
        else:
            print_row(f"  the same of {name}", "", f"{figures} ({ratio:.1f} x)", None)


def compare_live(gpumon, environment, seconds):
    top = [gpumon, "top", "--no-daemon", "--interval-ms", "1000"]
    percent, rss = measure_live(top, environment, seconds)
    print_row(
        "gpumon top without a server, 1 Hz",
        "<= 0.2 % of a core",
        f"{percent:.3f} %",
        percent <= 0.2,
    )
    print_row("  RSS", "<= 14 MB", f"{rss:.1f} MB", rss <= 14)
    for name, command in select_installed(LIVE).items():
        theirs, memory = measure_live(command, environment, seconds)
        figures = f"{theirs:.3f} % ({theirs / percent:.1f} x), {memory:.1f} MB"
        print_row(f"  the same of {name}", "", figures, None)


def compare_all(gpumon, environment, seconds, rounds=15):
    environment = {**environment, **TERMINAL}
    compare_once(gpumon, environment, rounds)
    compare_live(gpumon, environment, seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpumon", default="gpumon")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    compare_all(arguments.gpumon, {}, arguments.seconds, arguments.rounds)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
