#!/usr/bin/env python3
"""Checks on a real GPU that polling does not slow down other programs.

    python3 tests/real-gpu/overhead.py [path to gpumon]

Needs nvcc. A stream of small kernels runs all the time. `gpumon collect` polls at 10 Hz with all
features, and is stopped and continued alternately, so that a drift of the machine affects both
states equally. Prints the ratio of the rates, and the processor time of polling at 1 and 10 Hz. The
exit code is 1 if the ratio is below 0.995.
"""

import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

TARGET = 0.995
PAIRS = 20
WINDOW_S = 3.0
EDGE_S = 0.4
HERE = Path(__file__).resolve().parent


def start_stream():
    program = Path(tempfile.mkdtemp()) / "small_kernels"
    subprocess.run(["nvcc", "-O3", "-o", program, HERE / "small_kernels.cu"], check=True)
    running = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)
    marks = []
    threading.Thread(
        target=lambda: marks.extend(tuple(map(float, line.split())) for line in running.stdout),
        daemon=True,
    ).start()
    return running, marks


def step_rate(marks, begun, ended):
    """Returns the kernels per second between two moments, without the first seconds."""
    within = [mark for mark in marks if begun + EDGE_S <= mark[0] <= ended]
    (first_at, first), (last_at, last) = within[0], within[-1]
    return (last - first) / (last_at - first_at)


def cpu_seconds(pid):
    return (
        sum(
            int(task.read_text().split()[0])
            for task in Path(f"/proc/{pid}/task").glob("*/schedstat")
        )
        / 1e9
    )


def measure_cost(gpumon, interval_ms, seconds=10):
    collector = subprocess.Popen(
        [gpumon, "collect", "--interval-ms", str(interval_ms)], stdout=subprocess.DEVNULL
    )
    time.sleep(3)
    begun = cpu_seconds(collector.pid)
    time.sleep(seconds)
    percent = 100 * (cpu_seconds(collector.pid) - begun) / seconds
    rss = next(
        line
        for line in Path(f"/proc/{collector.pid}/status").read_text().splitlines()
        if line.startswith("VmRSS")
    )
    collector.kill()
    collector.wait()
    return percent, int(rss.split()[1]) / 1024


def main():
    gpumon = sys.argv[1] if len(sys.argv) > 1 else "gpumon"
    running, marks = start_stream()
    time.sleep(3)
    collector = subprocess.Popen(
        [gpumon, "collect", "--interval-ms", "100"], stdout=subprocess.DEVNULL
    )
    time.sleep(3)
    windows = {True: [], False: []}
    for at in range(2 * PAIRS):
        # The order is polled, unpolled, unpolled, polled. It cancels out a steady drift.
        polled = at % 4 in (0, 3)
        os.kill(collector.pid, signal.SIGCONT if polled else signal.SIGSTOP)
        begun = time.monotonic()
        time.sleep(WINDOW_S)
        windows[polled].append(step_rate(marks, begun, time.monotonic()))
    os.kill(collector.pid, signal.SIGCONT)
    collector.kill()
    collector.wait()
    ratios = [polled / unpolled for polled, unpolled in zip(windows[True], windows[False])]
    ratio = statistics.mean(windows[True]) / statistics.mean(windows[False])
    print(
        f"small kernels: {statistics.mean(windows[False]):.0f}/s unpolled, "
        f"{statistics.mean(windows[True]):.0f}/s polled at 10 Hz"
    )
    error = statistics.stdev(ratios) / len(ratios) ** 0.5
    print(
        f"ratio {ratio:.4f} (pairs: median {statistics.median(ratios):.4f}, standard error "
        f"{error:.4f}, {len(ratios)} pairs)"
    )
    for interval_ms in (1000, 100):
        percent, rss = measure_cost(gpumon, interval_ms)
        print(
            f"collect at {1000 // interval_ms} Hz meanwhile: {percent:.2f} % of a core, RSS "
            f"{rss:.1f} MB"
        )
    running.kill()
    sys.exit(ratio < TARGET)


if __name__ == "__main__":
    main()
