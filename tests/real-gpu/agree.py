#!/usr/bin/env python3
"""Compares gpumon with nvidia-smi on a real NVIDIA GPU under load.

    python3 tests/real-gpu/agree.py [path to gpumon]

Needs an NVIDIA driver with nvidia-smi, and PyTorch or CuPy for the load. Readings that change are
taken between two readings of nvidia-smi, and must be within their range plus a tolerance. The exit
code is 1 if there is any difference.
"""

import base64
import csv
import io
import json
import os
import re
import socket
import subprocess
import sys
import time

ROUNDS = 8
STREAM_S = 6
LOAD_S = 120

LOAD = """
import sys, time
end = time.time() + float(sys.argv[1])
try:
    import torch
    a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
    def step():
        for _ in range(200):
            a @ a
        torch.cuda.synchronize()
except ImportError:
    import cupy
    a = cupy.random.rand(8192, 8192, dtype=cupy.float32)
    def step():
        for _ in range(20):
            a @ a
        cupy.cuda.Device().synchronize()
print("ready", flush=True)
while time.time() < end:
    step()
"""

HOLD = """
import sys, time
try:
    import torch
    held = torch.zeros(1 << 30, device="cuda", dtype=torch.uint8)
    torch.cuda.synchronize()
except ImportError:
    import cupy
    held = cupy.zeros(1 << 30, dtype=cupy.uint8)
    cupy.cuda.Device().synchronize()
print("ready", flush=True)
time.sleep(float(sys.argv[1]))
"""

# The field of nvidia-smi, the path in gpumon's output, and the tolerance: absolute, or relative to
# the value.
FIELDS = [
    ("name", ("inventory", "name"), None),
    ("uuid", ("inventory", "uuid"), None),
    ("pci.bus_id", ("inventory", "pci_bus_id"), None),
    ("memory.total", ("sample", "memory", "total_bytes"), ("MiB", 1)),
    ("memory.used", ("sample", "memory", "used_bytes"), ("MiB", 1)),
    ("memory.reserved", ("sample", "memory", "reserved_bytes"), ("MiB", 1)),
    ("memory.free", ("sample", "memory", "free_bytes"), ("MiB", 1)),
    ("utilization.gpu", ("sample", "utilization", "gpu_percent"), ("", 5)),
    ("utilization.memory", ("sample", "utilization", "memory_percent"), ("", 5)),
    ("power.draw", ("sample", "power", "draw_watts"), ("share", 0.10)),
    ("power.limit", ("sample", "power", "limit_watts"), ("share", 0.001)),
    ("temperature.gpu", ("sample", "temperature", "gpu_celsius"), ("", 2)),
    ("temperature.memory", ("sample", "temperature", "memory_celsius"), ("", 2)),
    ("clocks.sm", ("sample", "clocks", "sm_mhz"), ("share", 0.05)),
    ("clocks.mem", ("sample", "clocks", "memory_mhz"), ("share", 0.001)),
    ("pstate", ("sample", "performance_state"), None),
    ("pcie.link.gen.current", ("sample", "pcie", "generation"), ("", 0)),
    ("pcie.link.width.current", ("sample", "pcie", "width"), ("", 0)),
]

failures = []


def print_check(ok, line):
    print(("  ok    " if ok else "  DIFF  ") + line)
    if not ok:
        failures.append(line)


def reading_value(reading):
    """Returns the value of a reading; None if it is absent."""
    if isinstance(reading, dict):
        return reading.get("value")
    return reading


def query_nvidia_smi(query, fields):
    command = ["nvidia-smi", f"--query-{query}={','.join(fields)}", "--format=csv,noheader,nounits"]
    output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [[cell.strip() for cell in row] for row in csv.reader(io.StringIO(output)) if row]


def gpumon_json(gpumon):
    return json.loads(
        subprocess.run([gpumon, "--json"], check=True, capture_output=True, text=True).stdout
    )


def gpumon_value(snapshot, index, path):
    where, *rest = path
    reading = snapshot[where]["gpus"][index]
    for key in rest:
        reading = reading[key]
    return reading_value(reading)


def compare_values(name, mine, before, after, tolerance):
    """Returns whether gpumon's value is in the range between two values of nvidia-smi, extended by
    the tolerance on both sides. nvidia-smi was read once before gpumon and once after it. Also
    returns the values of both programs as text.
    """
    if tolerance is None:
        mine = f"P{mine}" if name == "pstate" else mine
        return mine in (before, after), f"{mine} | {before} {after}"
    if before in ("[N/A]", "N/A"):
        return mine is None, f"{mine} | {before}"
    if mine is None:
        return False, f"absent | {before}"
    try:
        before, after = float(before), float(after)
    except ValueError:
        return False, f"{mine} | {before} {after}"
    kind, width = tolerance
    mine = mine / 2**20 if kind == "MiB" else mine
    low, high = sorted((before, after))
    slack = width * high if kind == "share" else width
    return low - slack <= mine <= high + slack, f"{mine:.2f} | {before} {after}"


def start_program(program, seconds):
    process = subprocess.Popen(
        [sys.executable, "-c", program, str(seconds)], stdout=subprocess.PIPE, text=True
    )
    if process.stdout.readline().strip() != "ready":
        sys.exit("the load did not start: it needs PyTorch or CuPy")
    return process


def check_readings(gpumon):
    names = [name for name, _, _ in FIELDS]
    worst = {name: None for name in names}
    agreed = {name: 0 for name in names}
    count = 0
    for _ in range(ROUNDS):
        before, snapshot, after = (
            query_nvidia_smi("gpu", names),
            gpumon_json(gpumon),
            query_nvidia_smi("gpu", names),
        )
        for index, (first, second) in enumerate(zip(before, after)):
            count += 1
            for (name, path, tolerance), one, two in zip(FIELDS, first, second):
                ok, words = compare_values(
                    name, gpumon_value(snapshot, index, path), one, two, tolerance
                )
                agreed[name] += ok
                if worst[name] is None or not ok:
                    worst[name] = words
        time.sleep(0.5)
    print(f"readings, gpumon | nvidia-smi before and after, {count} comparisons each:")
    for name in names:
        print_check(agreed[name] == count, f"{name:24} {agreed[name]}/{count}  {worst[name]}")


def check_processes(gpumon, load, hold):
    print("processes:")
    apps = {
        int(pid): memory for pid, memory in query_nvidia_smi("compute-apps", ["pid", "used_memory"])
    }
    snapshot = gpumon_json(gpumon)
    lists = [gpu["processes"] for gpu in snapshot["sample"]["gpus"]]
    for index, processes in enumerate(lists):
        if isinstance(processes, dict):
            print_check(False, f"the processes of GPU {index} are absent: {processes}")
    found = {
        process["pid"]: process
        for processes in lists
        if isinstance(processes, list)
        for process in processes
    }
    print_check(set(found) == set(apps), f"the same PIDs: {sorted(found)} | {sorted(apps)}")
    for pid, memory in apps.items():
        mine = reading_value(found[pid]["memory_bytes"]) if pid in found else None
        agrees, words = compare_values("memory", mine, memory, memory, ("MiB", 1))
        print_check(agrees, f"memory of {pid}: {words} MiB")
    for pid, busy in ((load.pid, True), (hold.pid, False)):
        share = reading_value(found[pid]["sm_percent"]) if pid in found else None
        print_check(
            share is not None and (share > 50 if busy else share < 5),
            f"SM of {pid}: {share} %, busy: {busy}",
        )
    if load.pid in found:
        print_check(
            "-c" in reading_value(found[load.pid]["command"]),
            f"command and user: {reading_value(found[load.pid]['user'])}",
        )


def read_frames(connection, seconds):
    """Yields the text frames of a WebSocket within this many seconds (RFC 6455, section 5.2; frames
    from servers are not masked).
    """
    end, buffer = time.time() + seconds, b""
    connection.settimeout(1)
    while time.time() < end:
        try:
            buffer += connection.recv(1 << 16)
        except socket.timeout:
            continue
        while len(buffer) >= 2:
            length, header = buffer[1] & 127, 2
            if length >= 126:
                extra = 2 if length == 126 else 8
                if len(buffer) < 2 + extra:
                    break
                length, header = int.from_bytes(buffer[2 : 2 + extra], "big"), 2 + extra
            if len(buffer) < header + length:
                break
            if buffer[0] & 15 == 1:
                yield json.loads(buffer[header : header + length])
            buffer = buffer[header + length :]


def check_stream(gpumon):
    print("stream:")
    server = subprocess.Popen(
        [gpumon, "serve", "--listen", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True
    )
    try:
        port = int(re.search(r"127\.0\.0\.1:(\d+)", server.stderr.readline()).group(1))
        connection = socket.create_connection(("127.0.0.1", port))
        key = base64.b64encode(os.urandom(16)).decode()
        connection.sendall(
            f"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: "
            f"Upgrade\r\nUpgrade: websocket\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n\r\n".encode()
        )
        answer = b""
        while not answer.endswith(b"\r\n\r\n"):
            answer += connection.recv(1)
        print_check(b" 101 " in answer, "the upgrade is accepted")
        received = list(read_frames(connection, STREAM_S))
        samples = [frame for frame in received if frame["type"] == "sample"]
        print_check(received[0]["type"] == "hello", f"the first frame is {received[0]['type']}")
        print_check(len(samples) >= STREAM_S - 2, f"{len(samples)} samples in {STREAM_S} s")
        watts = [reading_value(frame["gpus"][0]["power"]["draw_watts"]) for frame in samples]
        print_check(
            all(watts) and all(frame["gpus"][0]["health"]["state"] == "ok" for frame in samples),
            f"power {watts} W",
        )
    finally:
        server.terminate()
        started = time.time()
        server.wait(timeout=10)
        print_check(
            server.returncode == 0,
            f"exit code {server.returncode} {time.time() - started:.2f} s after SIGTERM",
        )


def measure_cost(command, runs=20):
    times = []
    for _ in range(runs):
        begun = time.perf_counter()
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        times.append((time.perf_counter() - begun) * 1000)
    return sorted(times)[runs // 2]


def main():
    gpumon = sys.argv[1] if len(sys.argv) > 1 else "gpumon"
    load, hold = start_program(LOAD, LOAD_S), start_program(HOLD, LOAD_S)
    try:
        time.sleep(3)
        check_readings(gpumon)
        check_processes(gpumon, load, hold)
        check_stream(gpumon)
        subprocess.run([gpumon], check=True)
        print(
            f"one call: gpumon {measure_cost([gpumon]):.0f} ms, "
            f"nvidia-smi {measure_cost(['nvidia-smi']):.0f} ms "
            f"(median)"
        )
    finally:
        load.kill()
        hold.kill()
    print(f"{len(failures)} differences" if failures else "everything agrees")
    sys.exit(bool(failures))


if __name__ == "__main__":
    main()
