"""Measures the growth of memory while processes constantly start and end. The measurement takes an
hour, so it only runs if it is selected by name.
"""

import os
import tempfile
import time
from pathlib import Path

from machine import GPUMON, PORT
from measure import Program, status_kb, wait_until_reachable
from report import print_row

GPUS = 64
#: Processes on each GPU. Each lives for one second, so 512 processes start per second.
PROCESSES = 8
#: For the first ten minutes, samples are stored without averaging, so memory grows. Only its growth
#: after that is measured.
FILLED = 10 * 60
MEASURED = 50 * 60
STEP = 30


def churn(_):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scenario.toml"
        path.write_text(make_scenario())
        command = [
            GPUMON,
            "--source",
            f"sim:{path}",
            "serve",
            "--no-control",
            "--listen",
            f"127.0.0.1:{PORT}",
        ]
        with Program(command, os.environ) as program:
            wait_until_reachable(PORT, "/readyz")
            time.sleep(FILLED)
            begin = resident_kb(program)
            most = begin
            for _step in range(MEASURED // STEP):
                time.sleep(STEP)
                most = [max(pair) for pair in zip(most, resident_kb(program), strict=True)]
    for name, first, last in zip(("serve", "collect"), begin, most, strict=True):
        grown = (last - first) / 1024
        what = f"{GPUS} GPUs, {GPUS * PROCESSES} new processes a second: RSS of {name} grows by"
        print_row(
            what,
            "<= 2 MB",
            f"{grown:.1f} MB in {MEASURED // 60} min, from {first / 1024:.1f} MB",
            grown <= 2,
        )


def make_scenario():
    process = (
        '[[process]]\ngpu = {}\npid = {}\ncount = {}\nlifetime_s = 1\nmemory = "4 '
        'GiB"\nsm_percent = 5\n'
    )
    details = 'name = "worker.py"\nuser = "ana"\ncommand = "python worker.py --shard 7"\n'
    # The simulated PIDs are higher than those of real processes. Each GPU has its own range of
    # PIDs, which is large enough for an hour.
    tables = [
        process.format(gpu, 2**22 + gpu * 1_000_000, PROCESSES) + details for gpu in range(GPUS)
    ]
    return "\n".join([f"gpus = {GPUS}", *tables])


def resident_kb(program):
    return [status_kb(pid, "VmRSS") for pid in program.tree_pids()[:2]]
