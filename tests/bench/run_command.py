"""The time that `gpumon run` adds to the start and the end of a command."""

import os
import shutil
import statistics
import subprocess
import time

from machine import GPUMON, Machine
from report import print_row

ROUNDS = 40
#: A command that runs long enough for the first readings.
COMMAND = ["sleep", "0.4"]


def run_command(_):
    peers = {
        "/usr/bin/time": ["/usr/bin/time", "-o", os.devnull],
        "perf stat": ["perf", "stat", "-o", os.devnull],
    }
    peers = {name: words for name, words in peers.items() if shutil.which(words[0])}
    with Machine() as machine:
        environment = {
            **os.environ,
            **machine.environment,
            "GPUMON_CONTROL": str(machine.path / "control.sock"),
        }
        ways = {"": [], "gpumon run": [str(GPUMON), "run", "--json", os.devnull, "--"], **peers}
        took = {name: [] for name in ways}
        # The commands alternate, because the speed of a machine varies.
        for _ in range(ROUNDS):
            for name, words in ways.items():
                began = time.perf_counter()
                subprocess.run([*words, *COMMAND], env=environment, check=True)
                took[name].append(1e3 * (time.perf_counter() - began))
    medians = {name: statistics.median(times) for name, times in took.items()}
    added = {name: median - medians[""] for name, median in medians.items() if name}
    ours = added["gpumon run"]
    print_row(
        "gpumon run, start and end together, median", "<= 10 ms", f"{ours:.1f} ms", ours <= 10
    )
    for name in peers:
        print_row(f"  the same of {name}", "", f"{added[name]:.1f} ms", None)
