#!/usr/bin/env python3
"""Measures the processor time of `gpumon serve` and its collector, with and without clients.

    python3 tests/real-gpu/probe_cost.py [path to gpumon] [--no-load] [--seconds 40]
        [options of gpumon, such as --nvml-lib]

Runs on idle GPUs, and under `gpumon burn` on all GPUs, for less than 200 s in total. nvidia-smi
dmon is also measured in both cases, with and without hardware counters. The exit code is 1 if a
server without clients takes more than 0.25 % of a core per GPU, or if both processes together use
more than 32 MB.
"""

import argparse
import base64
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

from server import PORT, Server

#: The limits without clients: percent of a core per GPU, and MB of both processes.
MAX_PERCENT = 0.25
MAX_MB = 32

SETTLE_S = 8
BURN_SETTLE_S = 15
PEER_SETTLE_S = 3
PEER_S = 15
WATCHED_SHARE = 0.5

PEERS = {
    "nvidia-smi dmon": ["nvidia-smi", "dmon", "-s", "pucvmet", "-d", "1"],
    "nvidia-smi dmon, GPM": [
        "nvidia-smi",
        "dmon",
        "--gpm-metrics",
        "2,3,5,10,20,21,60,61",
        "-d",
        "1",
    ],
}


def thread_seconds(pid):
    """Returns the run time of threads in seconds, by name."""
    seconds = Counter()
    for task in Path(f"/proc/{pid}/task").iterdir():
        try:
            name = (task / "comm").read_text().strip()
            try:
                ran = int((task / "schedstat").read_text().split()[0]) / 1e9
            except OSError:
                # Without `schedstat`, Linux only reports the time in hundredths of a second.
                user, system = (task / "stat").read_text().rsplit(")", 1)[1].split()[11:13]
                ran = (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")
            seconds[name] += ran
        except FileNotFoundError:
            pass
    return seconds


def child_pids(pid):
    tasks = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for task in tasks for child in task.read_text().split()]


def memory_mb(pid):
    """Returns RSS, PSS and private anonymous memory."""
    found = {}
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()[1:]:
        name, kilobytes = line.split()[:2]
        found[name.rstrip(":")] = int(kilobytes) / 1000
    return found["Rss"], found["Pss"], found.get("Anonymous", 0.0)


def measure_core_percents(pids, seconds):
    """Measures for this many seconds. For each process, returns its percentage of a core, and that
    of each of its threads.
    """
    before = {pid: thread_seconds(pid) for pid in pids}
    begun = time.monotonic()
    time.sleep(seconds)
    took = time.monotonic() - begun
    after = {pid: thread_seconds(pid) for pid in pids}
    by_thread = {
        pid: {name: 100 * (ran - before[pid][name]) / took for name, ran in after[pid].items()}
        for pid in pids
    }
    return {pid: (sum(names.values()), names) for pid, names in by_thread.items()}


class Watcher:
    """A client of the stream that reads all data."""

    def __enter__(self):
        self.socket = socket.create_connection(("127.0.0.1", PORT), timeout=10)
        key = base64.b64encode(os.urandom(16)).decode()
        self.socket.sendall(
            f"GET /api/v1/stream HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nUpgrade: "
            f"websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Key: {key}\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
        )
        if b" 101 " not in self.socket.recv(64):
            sys.exit("the server does not upgrade to a WebSocket")
        threading.Thread(target=self.read_stream, daemon=True).start()
        return self

    def read_stream(self):
        try:
            while self.socket.recv(1 << 16):
                pass
        except OSError:
            pass

    def __exit__(self, *_):
        self.socket.close()


def format_top_threads(names):
    """Returns the most expensive threads as text."""
    top = sorted(names.items(), key=lambda one: -one[1])[:4]
    return ", ".join(f"{name} {percent:.3f}" for name, percent in top if percent >= 0.001)


def print_cost(load, server, seconds):
    """Prints the cost of both processes. Returns their percent of a core without clients, and their
    memory.
    """
    pids = {"serve": server.process.pid, "collect": child_pids(server.process.pid)[0]}

    def measure_state(state, for_seconds):
        found = measure_core_percents(pids.values(), for_seconds)
        total = sum(percent for percent, _ in found.values())
        print(f"{load}, {state}: {total:.3f} % of a core", flush=True)
        for name, pid in pids.items():
            percent, names = found[pid]
            rss, pss, own = memory_mb(pid)
            print(
                f"  {name:8}{percent:.3f} %  RSS {rss:.1f} MB, PSS {pss:.1f}, anonymous {own:.1f} "
                f" ({format_top_threads(names)})",
                flush=True,
            )
        return total

    unwatched = measure_state(f"no clients, {seconds} s", seconds)
    memory = sum(memory_mb(pid)[0] for pid in pids.values())
    with Watcher():
        time.sleep(2)
        measure_state("one WebSocket", seconds * WATCHED_SHARE)
    return unwatched, memory


def measure_peers(load):
    """Measures all other monitors at the same time. They hardly affect each other, because each of
    them mostly waits.
    """
    if not shutil.which("nvidia-smi"):
        print("  nvidia-smi is not installed", flush=True)
        return
    running = {
        name: subprocess.Popen(command, stdout=subprocess.DEVNULL)
        for name, command in PEERS.items()
    }
    time.sleep(PEER_SETTLE_S)
    ended = [name for name, peer in running.items() if peer.poll() is not None]
    found = measure_core_percents(
        [peer.pid for name, peer in running.items() if name not in ended], PEER_S
    )
    for name, peer in running.items():
        if name in ended:
            print(f"{load}, {name}: exited with code {peer.returncode}", flush=True)
        else:
            print(
                f"{load}, {name}: {found[peer.pid][0]:.3f} % of a core, RSS "
                f"{memory_mb(peer.pid)[0]:.1f} MB",
                flush=True,
            )
            peer.kill()
            peer.wait()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gpumon", nargs="?", default="gpumon")
    parser.add_argument("--no-load", action="store_true", help="only measure with idle GPUs")
    parser.add_argument(
        "--seconds",
        type=int,
        default=40,
        help="duration of each measurement without clients, in seconds; with a client, it is half",
    )
    args, source = parser.parse_known_args()
    gpumon = str(Path(args.gpumon).resolve()) if os.path.exists(args.gpumon) else args.gpumon
    with (
        tempfile.TemporaryDirectory() as folder,
        Server(gpumon, "--no-join", "--data-dir", folder, *source) as server,
    ):
        gpus = len(server.gpu_samples())
        # After its last request, a client counts as watching for ten seconds.
        time.sleep(10 + SETTLE_S)
        results = [print_cost(f"{gpus} GPUs, idle", server, args.seconds)]
        measure_peers("idle")
        if not args.no_load:
            seconds = (
                BURN_SETTLE_S + args.seconds * (1 + WATCHED_SHARE) + PEER_SETTLE_S + PEER_S + 30
            )
            burn = subprocess.Popen(
                [gpumon, "burn", "--time", f"{seconds:.0f}s"], stdout=subprocess.DEVNULL
            )
            time.sleep(BURN_SETTLE_S)
            results.append(print_cost(f"{gpus} GPUs, burn", server, args.seconds))
            measure_peers("burn")
            if burn.poll() is not None:
                sys.exit(f"gpumon burn exited with code {burn.returncode} during the measurement")
            burn.terminate()
            burn.wait()
    worst, memory = max(percent for percent, _ in results) / gpus, max(mb for _, mb in results)
    print(
        f"unwatched: {worst:.3f} % of a core for each GPU (at most {MAX_PERCENT}), {memory:.1f} "
        f"MB (at most {MAX_MB})"
    )
    return int(worst > MAX_PERCENT or memory > MAX_MB)


if __name__ == "__main__":
    sys.exit(main())
