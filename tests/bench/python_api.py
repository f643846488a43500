"""The cost of the Python package to the code that it measures."""

import json
import os
import subprocess
import sys

from machine import GPUMON, ROOT, Machine
from report import print_row

#: A program that prints durations in seconds: that of the import, that of the first measurement,
#: and those of many further measurements.
PROGRAM = """
import json, sys, time
began = time.perf_counter()
import gpumon
took = {"import": time.perf_counter() - began}
import gpumon._helper
gpumon._helper.find_gpumon_bin = lambda: sys.argv[1]

def measured():
    began = time.perf_counter()
    with gpumon.measure("step"):
        pass
    return time.perf_counter() - began

took["first"] = measured()
time.sleep(2)
# The loop simulates training with 200 steps per second.
took["each"] = []
for _ in range(2000):
    time.sleep(0.005)
    took["each"].append(measured())
began = time.perf_counter()
for _ in range(10_000):
    measured()
took["at_once"] = (time.perf_counter() - began) / 10_000
print(json.dumps(took))
"""


def python(_):
    with Machine() as machine:
        environment = {
            **os.environ,
            **machine.environment,
            "PYTHONPATH": str(ROOT / "python"),
            "GPUMON_CONTROL": str(machine.path / "control.sock"),
        }
        command = [sys.executable, "-c", PROGRAM, GPUMON]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    took = json.loads(done.stdout)
    each = sorted(1e6 * seconds for seconds in took["each"])
    middle, late = each[len(each) // 2], each[len(each) * 99 // 100]
    at_once = 1e6 * took["at_once"]
    print_row(
        "with gpumon.measure(), median of 2,000, 200 a second",
        "<= 50 us",
        f"{middle:.0f} us, 99th percentile {late:.0f} us",
        middle <= 50,
    )
    print_row("  mean of 10,000 without a pause", "<= 50 us", f"{at_once:.0f} us", at_once <= 50)
    print_row(
        "  the first one, which starts the program",
        "<= 50 ms",
        f"{1e3 * took['first']:.1f} ms",
        took["first"] <= 0.05,
    )
    print_row(
        "  import gpumon", "<= 20 ms", f"{1e3 * took['import']:.1f} ms", took["import"] <= 0.02
    )
