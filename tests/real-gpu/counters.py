#!/usr/bin/env python3
"""Compares gpumon's counters with work of a known size, on a real GPU from Hopper on.

    python3 tests/real-gpu/counters.py [path to gpumon]

Needs PyTorch. Runs one load after the other and compares matrix products with the activity of
tensor cores, copies with the rates of PCIe and NVLink (the latter needs two GPUs), and energy with
the integral of power over the same time. The exit code is 1 if anything exceeds its tolerance.
"""

import json
import subprocess
import sys
import threading
import time

import torch

MEASURE_S = 11
# On Hopper, each of a multiprocessor's four tensor cores does 512 dense bf16 fused multiply-adds
# per cycle.
FLOPS_PER_SM_AND_CYCLE = 4096
failures = []


def print_check(ok, line):
    print(("  ok    " if ok else "  OFF   ") + line, flush=True)
    if not ok:
        failures.append(line)


def reading_value(reading):
    if isinstance(reading, dict) and ("value" in reading or "absent" in reading):
        return reading.get("value")
    return reading


def format_deviation(found, expected):
    return f"{100 * (found / expected - 1):+.2f} %"


class Load:
    """A thread that repeats `step` until the `with` block ends, and counts the steps."""

    def __init__(self, step):
        self.step, self.count, self.running = step, 0, True
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while self.running:
            self.step()
            self.count += 1

    def __enter__(self):
        self.thread.start()
        time.sleep(2)
        return self

    def __exit__(self, *_):
        self.running = False
        self.thread.join()


def measure_load(gpumon, load, gpu):
    """Returns samples over some seconds, and the steps per second between the first and the last
    sample.
    """
    command = [gpumon, "collect", "--interval-ms", "1000", "--count", str(MEASURE_S + 1)]
    samples, marks = [], []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout:
            record = json.loads(line)
            if record["type"] == "sample":
                marks.append((time.perf_counter(), load.count))
                samples.append(record["gpus"][gpu])
    (begun, first), (ended, last) = marks[0], marks[-1]
    # The first sample lacks rates, because there is no earlier sample.
    return samples[1:], (last - first) / (ended - begun)


def mean_reading(samples, *path):
    numbers = []
    for sample in samples:
        for key in path:
            sample = reading_value(sample)[key]
        numbers.append(reading_value(sample))
    return sum(numbers) / len(numbers) if None not in numbers else None


def energy_counter(sample):
    """Returns the energy counter and its time; it is read less often than other readings."""
    reading = sample["power"]["energy_joules_total"]
    return (
        (reading["value"], reading["at_ms"])
        if isinstance(reading, dict)
        else (reading, sample["at_ms"])
    )


def check_matrix_products(gpumon):
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)

    def step():
        for _ in range(100):
            a @ a
        torch.cuda.synchronize()

    with Load(step) as load:
        samples, steps = measure_load(gpumon, load, 0)
        print("bf16 matrix products:")
        for part in (
            "sm",
            "occupancy",
            "tensor",
            "tensor_half",
            "tensor_integer",
            "fp32",
            "integer",
            "dram_bandwidth",
        ):
            print(
                f"        {part:16} {mean_reading(samples, 'activity', part + '_percent'):6.1f} %"
            )
        print_check(
            mean_reading(samples, "activity", "sm_percent") > 90, "the multiprocessors are busy"
        )
        print_check(
            mean_reading(samples, "activity", "tensor_percent") > 80, "the tensor cores are busy"
        )
        print_check(
            mean_reading(samples, "activity", "tensor_integer_percent") < 1,
            "the tensor cores do not compute with integers",
        )
        # The peak rate of the tensor cores at the current clock.
        possible = (
            torch.cuda.get_device_properties(0).multi_processor_count
            * FLOPS_PER_SM_AND_CYCLE
            * 1e6
            * mean_reading(samples, "clocks", "sm_mhz")
        )
        expected = 100 * steps * 100 * 2 * 8192**3 / possible
        found = mean_reading(samples, "activity", "tensor_percent")
        print_check(
            abs(found / expected - 1) < 0.02,
            f"tensor cores {found:.1f} %, expected for these products {expected:.1f} %: "
            f"{format_deviation(found, expected)}",
        )
        (first, begun), (last, ended) = energy_counter(samples[0]), energy_counter(samples[-1])
        energy, seconds = last - first, (ended - begun) / 1000
        # The energy counter only changes every 100 ms, so a small difference is tolerated.
        integral = mean_reading(samples[1:], "power", "draw_watts") * seconds
        print_check(
            abs(energy / integral - 1) < 0.05,
            f"energy {energy:.0f} J, integrated {integral:.0f} J: "
            f"{format_deviation(energy, integral)}",
        )


def check_copies(gpumon):
    size = 1 << 30
    host = torch.empty(size, dtype=torch.uint8, pin_memory=True)
    here = torch.empty(size, dtype=torch.uint8, device="cuda:0")
    routes = [
        ("host to device", "pcie", "rx", lambda: here.copy_(host, non_blocking=True)),
        ("device to host", "pcie", "tx", lambda: host.copy_(here, non_blocking=True)),
    ]
    if torch.cuda.device_count() > 1:
        there = torch.empty(size, dtype=torch.uint8, device="cuda:1")
        routes.append(
            ("GPU 0 to GPU 1", "nvlink", "tx", lambda: there.copy_(here, non_blocking=True))
        )
    for name, link, direction, copy in routes:

        def step(copy=copy):
            for _ in range(8):
                copy()
            torch.cuda.synchronize(0)
            if torch.cuda.device_count() > 1:
                torch.cuda.synchronize(1)

        with Load(step) as load:
            samples, steps = measure_load(gpumon, load, 0)
        copied = steps * 8 * size
        read = mean_reading(samples, link, f"{direction}_bytes_per_second")
        print(f"{name}: {copied / 1e9:.1f} GB/s copied")
        # The link carries more bytes than are copied: PCIe packets of 256 bytes have 8 to 10 % of
        # headers and acknowledgements, NVLink's 2 to 3 %.
        overhead = (read or 0) / copied - 1
        print_check(
            0 < overhead < (0.12 if link == "pcie" else 0.04),
            f"{link} {direction}: {(read or 0) / 1e9:.1f} GB/s read, "
            f"{format_deviation(read or 0, copied)}",
        )


def main():
    gpumon = sys.argv[1] if len(sys.argv) > 1 else "gpumon"
    check_matrix_products(gpumon)
    check_copies(gpumon)
    print(
        f"{len(failures)} values are outside their tolerance"
        if failures
        else "all values are within their tolerance"
    )
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
