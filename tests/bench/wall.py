#!/usr/bin/env python3
"""Compares the run time of `gpumon smi` with that of NVIDIA's nvidia-smi on the same machine.

    python3 tests/bench/wall.py [--gpumon PATH] [--rounds 15] [--busy]

Needs an NVIDIA GPU. Both run alternately. Prints the median of each and their ratio, with and
without a server. `make bench` runs it if there is an nvidia-smi.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

# Command lines that people and scripts typically use. The constants below are the target ratios
# without and with a server.
FORMS = {
    "summary": [],
    "-L": ["-L"],
    "two fields": ["--query-gpu=memory.used,utilization.gpu", "--format=csv,noheader"],
    "-q": ["-q"],
    "-q -x": ["-q", "-x"],
}
ALONE, SERVED = 0.6, 0.12

LOAD = """
import torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
print("ready", flush=True)
while True:
    a @ a; torch.cuda.synchronize()
"""


def wall_ms(command, environment):
    begin = time.perf_counter()
    subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, check=True)
    return (time.perf_counter() - begin) * 1000


def measure_ratio(gpumon, rounds, environment, target, what):
    """Prints the medians and the ratio of each command line. Returns the command lines that miss
    the target.
    """
    missed = []
    for name, words in FORMS.items():
        theirs, ours = [], []
        for _ in range(rounds):
            theirs.append(wall_ms(["nvidia-smi", *words], environment))
            ours.append(wall_ms([gpumon, "smi", *words], environment))
        theirs, ours = statistics.median(theirs), statistics.median(ours)
        ratio = ours / theirs
        verdict = "" if ratio <= target else "  MISSED"
        print(
            f"{name + ', ' + what:<34} nvidia-smi {theirs:7.1f} ms  gpumon {ours:6.1f} ms  ratio "
            f"{ratio:.3f} (<= {target}){verdict}",
            flush=True,
        )
        if ratio > target:
            missed.append(f"{name}, {what}")
    return missed


def measure_all_ratios(gpumon, rounds=15, busy=False):
    """Prints all ratios and returns those that miss their target."""
    load = None
    if busy:
        load = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True)
        load.stdout.readline()
        time.sleep(2)
    control = str(Path(tempfile.mkdtemp()) / "gpumon.sock")
    environment = dict(os.environ, GPUMON_CONTROL=control)
    state = ", busy" if busy else ""
    missed = measure_ratio(gpumon, rounds, environment, ALONE, f"alone{state}")
    server = subprocess.Popen(
        [gpumon, "serve", "--listen", "127.0.0.1:0", "--control", control],
        stdout=subprocess.DEVNULL,
    )
    try:
        time.sleep(15)
        missed += measure_ratio(gpumon, rounds, environment, SERVED, f"with a server{state}")
    finally:
        server.terminate()
        if load:
            load.kill()
    return missed


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpumon", default="gpumon")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--busy", action="store_true", help="run a load (needs PyTorch)")
    arguments = parser.parse_args()
    sys.exit(bool(measure_all_ratios(arguments.gpumon, arguments.rounds, arguments.busy)))


if __name__ == "__main__":
    main()
