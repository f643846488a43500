#!/usr/bin/env python3
"""The cost of 64 hosts over ssh, including 8 that hang, exit, refuse the connection or send
garbage: the time until the others are shown, the number of processes, and memory.

    python3 tests/bench/hosts.py [--gpumon target/release/gpumon] [--gpus 8]

All hosts are this machine, behind a real sshd on loopback (tests/hosts/sshd.sh). The work of the
hosts and of sshd also runs on this machine, and takes most of the time. Needs ssh and sshd
(tools/need.py sshd).
"""

import argparse
import json
import os
import signal
import socket
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
GOOD = "gpumon[1-50],smi[1-6]"
BAD = "hang1,stuck1,babble[1-2],die[1-2],refuse1,locked1"
HOSTS = 56
PORTS = 9
PATIENCE_S = 120
STEADY_S = 20


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--gpumon", type=Path, default=ROOT / "target/release/gpumon")
    parser.add_argument("--gpus", type=int, default=8)
    given = parser.parse_args()
    gpumon = given.gpumon.resolve()
    with tempfile.TemporaryDirectory() as folder:
        environment = {
            **os.environ,
            "GPUMON_TEST_GPUS": str(given.gpus),
            "GPUMON_CONTROL": f"{folder}/control",
        }
        script = ["sh", ROOT / "tests/hosts/sshd.sh", folder, gpumon, str(find_free_ports())]
        sshd = subprocess.Popen(script, env=environment, stderr=subprocess.PIPE, text=True)
        try:
            for _ in range(PORTS - 1):
                while "Server listening" not in sshd.stderr.readline():
                    pass
            options = [
                "--ssh-config",
                f"{folder}/config",
                "--hosts",
                f"{GOOD},{BAD}",
                "--listen",
                "127.0.0.1:0",
            ]
            measure_command(
                [gpumon, "--config", "none", "fleet", *options], folder, environment, sshd
            )
        finally:
            sshd.kill()


def measure_command(command, folder, environment, sshd):
    begun = time.monotonic()
    server = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)
    address = server.stderr.readline().split()[-1]
    first = True
    while (up := read_fleet(address)["nodes"]["health"].count("up")) < HOSTS:
        took = time.monotonic() - begun
        if up and first:
            print(f"the first hosts are shown after {took:.2f} s: {up}")
            first = False
        if took > PATIENCE_S:
            raise SystemExit(f"only {up} of {HOSTS} hosts are shown after {took:.0f} s")
        time.sleep(0.05)
    print(f"{up} of 64 hosts are shown after {time.monotonic() - begun:.2f} s")
    before = cpu_s(server.pid)
    time.sleep(STEADY_S)
    near = [
        pid
        for pid in list_pids()
        if f"{folder}/config" in process_arguments(pid)
        and "--ssh-config" not in process_arguments(pid)
    ]
    ssh = sum(pss_kib(pid) for pid in near)
    print(
        f"server: {pss_kib(server.pid) / 1024:.0f} MiB (PSS), "
        f"{100 * (cpu_s(server.pid) - before) / STEADY_S:.1f} % of a CPU"
    )
    print(f"ssh: {len(near)} processes, {ssh / 1024:.0f} MiB (PSS) together")
    begun = time.monotonic()
    server.send_signal(signal.SIGKILL)
    server.wait()
    mark = f"GPUMON_TEST_FOLDER={folder}".encode()
    while left := [
        pid
        for pid in list_pids()
        if mark in process_variables(pid) or (f"{folder}/config" in process_arguments(pid))
    ]:
        if time.monotonic() - begun > PATIENCE_S:
            raise SystemExit(f"processes that are still running: {left}")
        time.sleep(0.05)
    print(f"all processes have ended {time.monotonic() - begun:.2f} s after SIGKILL")


def read_fleet(address):
    with urllib.request.urlopen(f"{address}api/v1/fleet") as answer:
        return json.load(answer)


def find_free_ports():
    while True:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            first = one.getsockname()[1]
        try:
            for port in range(first, first + PORTS):
                with socket.socket() as one:
                    one.bind(("127.0.0.1", port))
        except OSError:
            continue
        return first


def list_pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def read_proc(pid, name):
    try:
        return Path(f"/proc/{pid}/{name}").read_bytes()
    except OSError:
        return b""


def process_arguments(pid):
    return read_proc(pid, "cmdline").replace(b"\0", b" ").decode(errors="replace")


def process_variables(pid):
    return read_proc(pid, "environ").split(b"\0")


def pss_kib(pid):
    lines = read_proc(pid, "smaps_rollup").decode().splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("Pss:")), 0)


def cpu_s(pid):
    fields = read_proc(pid, "stat").rsplit(b")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
