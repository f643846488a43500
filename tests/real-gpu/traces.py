#!/usr/bin/env python3
"""Compares the driver's buffers, as gpumon reads them, with the fastest possible polling on a real
GPU.

    python3 tests/real-gpu/traces.py [path to gpumon]

Needs PyTorch. A load is switched on and off every second and a half. Checks that consecutive traces
have no gaps and no duplicates, compares the energy of the 50 Hz power with that of the polled power
and with the energy counter, and prints the time shift between the two curves. The exit code is 1 if
anything is wrong.
"""

import ctypes
import json
import statistics
import subprocess
import sys
import threading
import time

import torch

SECONDS = 30
ENERGY_TOLERANCE = 0.02
failures = []


def print_check(ok, line):
    print(("  ok    " if ok else "  OFF   ") + line, flush=True)
    if not ok:
        failures.append(line)


class Value(ctypes.Union):
    _fields_ = [("number", ctypes.c_uint), ("room", ctypes.c_ulonglong)]


class Field(ctypes.Structure):
    _fields_ = [
        ("id", ctypes.c_uint),
        ("scope", ctypes.c_uint),
        ("timestamp", ctypes.c_longlong),
        ("latency", ctypes.c_longlong),
        ("kind", ctypes.c_int),
        ("code", ctypes.c_int),
        ("value", Value),
    ]


def poll_power(points, stop):
    """Polls the instant power (field 186) as fast as possible."""
    nvml = ctypes.CDLL("libnvidia-ml.so.1")
    device, field = ctypes.c_void_p(), Field(id=186)
    nvml.nvmlInit_v2()
    nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))
    while not stop.is_set():
        nvml.nvmlDeviceGetFieldValues(device, 1, ctypes.byref(field))
        points.append((time.time(), field.value.number / 1000))
        time.sleep(0.001)


def run_load(stop):
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    while not stop.is_set():
        if int(time.time() / 1.5) % 2:
            for _ in range(20):
                a @ a
            torch.cuda.synchronize()
        else:
            time.sleep(0.01)


def trace_joules(points, begun, ended):
    """Returns the energy in joules from `begun` to `ended`: the area under a curve in which each
    power value lasts until the next one.
    """
    within = [point for point in points if begun <= point[0] <= ended]
    pairs = zip(within, within[1:])
    return (
        sum((after - at) * watts for (at, watts), (after, _) in pairs)
        / (within[-1][0] - within[0][0])
        * (ended - begun)
    )


def value_and_cursor_at(points, at, cursor):
    while cursor + 1 < len(points) and points[cursor + 1][0] <= at:
        cursor += 1
    return points[cursor][1], cursor


def energy_counter(sample):
    reading = sample["power"]["energy_joules_total"]
    return (
        (reading["value"], reading["at_ms"])
        if isinstance(reading, dict)
        else (reading, sample["at_ms"])
    )


def main():
    gpumon = sys.argv[1] if len(sys.argv) > 1 else "gpumon"
    stop, polled = threading.Event(), []
    threads = [
        threading.Thread(target=run_load, args=(stop,)),
        threading.Thread(target=poll_power, args=(polled, stop)),
    ]
    for thread in threads:
        thread.start()
    time.sleep(3)
    command = [gpumon, "collect", "--count", str(SECONDS + 1)]
    records = [
        json.loads(line)
        for line in subprocess.run(command, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    ]
    stop.set()
    for thread in threads:
        thread.join()

    for metric, spacing_ms in [("power_watts", 20), ("gpu_percent", 200), ("memory_percent", 200)]:
        traces = [
            record
            for record in records
            if record["type"] == "trace" and record["index"] == 0 and record["metric"] == metric
        ]
        times = [trace["start_us"] + offset for trace in traces for offset in trace["offsets_us"]]
        steps = [after - at for at, after in zip(times, times[1:])]
        seams = [
            after["start_us"] - before["start_us"] - before["offsets_us"][-1]
            for before, after in zip(traces, traces[1:])
        ]
        print_check(
            all(step > 0 for step in steps)
            and max(steps) < 2.5 * spacing_ms * 1000
            and not any(trace["gap"] for trace in traces[1:]),
            f"{metric}: {len(times)} samples in {len(traces)} traces, every "
            f"{statistics.median(steps) / 1000:.1f} ms "
            f"({min(steps) / 1000:.1f} to {max(steps) / 1000:.1f}; at the seams "
            f"{min(seams) / 1000:.1f} to {max(seams) / 1000:.1f})",
        )
        if metric == "power_watts":
            curve = [
                ((trace["start_us"] + offset) / 1e6, watts)
                for trace in traces
                for offset, watts in zip(trace["offsets_us"], trace["values"])
            ]

    samples = [record["gpus"][0] for record in records if record["type"] == "sample"]
    (first, first_ms), (last, last_ms) = energy_counter(samples[0]), energy_counter(samples[-1])
    begun, ended = first_ms / 1000, min(last_ms / 1000, curve[-1][0])
    counted = (last - first) * (ended - begun) / (last_ms / 1000 - begun)
    drained, asked = trace_joules(curve, begun, ended), trace_joules(polled, begun, ended)
    share = drained / asked - 1
    print_check(
        abs(share) < ENERGY_TOLERANCE,
        f"energy of {ended - begun:.0f} s: 50 Hz {drained:.0f} J, polled {asked:.0f} J: "
        f"{100 * share:+.2f} %",
    )
    share = drained / counted - 1
    print_check(
        abs(share) < ENERGY_TOLERANCE,
        f"  compared with {counted:.0f} J of the energy counter: {100 * share:+.2f} %",
    )

    best = None
    for shift_ms in range(-200, 201, 5):
        cursor, apart = 0, []
        for at, watts in curve:
            if begun + 1 < at < ended - 1:
                value, cursor = value_and_cursor_at(polled, at + shift_ms / 1000, cursor)
                apart.append(abs(value - watts))
        best = min(best or (1e9, 0), (statistics.mean(apart), shift_ms))
    changes = [at for (at, watts), (_, before) in zip(polled[1:], polled) if watts != before]
    every = 1000 * statistics.median([after - at for at, after in zip(changes, changes[1:])])
    print(f"  the polled power changes every {every:.0f} ms ({len(polled)} polls)")
    print(
        f"  the two curves differ by {best[0]:.1f} W on average, and the 50 Hz curve is {best[1]} "
        f"ms ahead; range {max(w for _, w in curve) - min(w for _, w in curve):.0f} W"
    )
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
