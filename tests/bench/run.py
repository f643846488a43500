#!/usr/bin/env python3
"""Measures the cost of gpumon with the GPUs of the fake NVML library: `make bench`.

    python3 tests/bench/run.py [--seconds 60] [--only NAME] [--history-seconds 300]

Prints one line per figure: its name, the target and the measured value. Other monitors are measured
in the same run if they are installed (all-smi, nvitop-exporter, nvitop, nvtop and gpustat on the
PATH), because machines differ and a ratio stays valid longer than a number. tests/real-gpu/ has the
measurements that need a real GPU.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import time
from pathlib import Path

import churn
import clients
import history
import python_api
import run_command
import scrapes
import terminal
import wall
import wire
from machine import GPUMON, PORT, ROOT, Machine
from measure import Program, get, wait_until_reachable
from reasons import REASONS
from report import missed, print_row
from screen import Screen

# The latencies of NVML calls on an H200.
LATENCIES = (Path(__file__).parent / "h200.toml").read_text()


def cost(seconds):
    with Machine() as machine:
        with machine.serve() as program:
            time.sleep(5)
            percent = program.cpu_percent(seconds)
            rss = program.rss_mb()
        print_row(
            "CPU of serve and collect, 8 GPUs, 4 processes each, 1 Hz",
            "<= 0.3 % of a core",
            f"{percent:.3f} %",
            percent <= 0.3,
        )
        print_row("RSS of both together, after a minute", "<= 20 MB", f"{rss:.1f} MB", rss <= 20)
        for name, command, path in installed_peer_commands():
            with Program(command, machine.environment) as peer:
                wait_until_reachable(PORT + 1, path, 30)
                time.sleep(5)
                theirs, memory = peer.cpu_percent(seconds), peer.rss_mb()
            print_row(
                f"  the same of {name}",
                "",
                f"{theirs:.3f} % ({theirs / percent:.1f} x), {memory:.1f} MB",
                None,
            )


def installed_peer_commands():
    port = str(PORT + 1)
    if shutil.which("all-smi"):
        yield (
            "all-smi",
            ["all-smi", "api", "--port", port, "--interval", "1", "--processes"],
            "/metrics",
        )
    if shutil.which("nvitop-exporter"):
        yield "nvitop-exporter", ["nvitop-exporter", "--port", port, "--interval", "1"], "/metrics"


# A configuration in which top shows all columns of processes.
EVERYTHING = """[top]
tree = true
columns = ["gpu", "pid", "user", "kind", "memory", "share", "sm", \
"memory-busy", "encoder", "decoder", "cpu", "host-memory", "threads", "time", "what"]
"""


def top(seconds):
    with Machine() as machine:
        settings = machine.path / "config.toml"
        settings.write_text(EVERYTHING)
        command = [GPUMON, "top", "--no-daemon", "--config", settings]
        environment = {**machine.environment, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"}
        with (
            Screen(120, 40) as screen,
            Program(command, environment, stdin=screen.inside, stdout=screen.inside) as program,
        ):
            time.sleep(5)
            before, percent = screen.drawn, program.cpu_percent(seconds)
            rate, rss = (screen.drawn - before) / seconds, program.rss_mb()
        first = statistics.median(first_paint(command, environment) for _ in range(15))
    print_row(
        "CPU of gpumon top without a server, all columns, 8 GPUs, 1 Hz, 120x40",
        "<= 0.4 % of a core",
        f"{percent:.3f} %",
        percent <= 0.4,
    )
    print_row("  RSS", "<= 15 MB", f"{rss:.1f} MB", rss <= 15)
    print_row("  what it writes to the terminal", "something", f"{rate / 1000:.1f} kB/s", rate > 0)
    print_row("  first paint, median of 15", "<= 30 ms", f"{first:.1f} ms", first <= 30)


def compare_peers(seconds):
    with Machine(gpus=1) as machine:
        terminal.compare_all(GPUMON, machine.environment, seconds)


def first_paint(command, environment):
    begin = time.perf_counter()
    with (
        Screen(120, 40) as screen,
        Program(command, environment, stdin=screen.inside, stdout=screen.inside) as program,
    ):
        while screen.first is None:
            if program.process.poll() is not None:
                sys.exit("gpumon top exited before it drew anything")
            time.sleep(0.001)
        return (screen.first - begin) * 1000


def collect_records(machine, *arguments):
    """Returns the records of a collector that exits on its own."""
    done = subprocess.run(
        [GPUMON, "collect", *arguments],
        env={**os.environ, **machine.environment},
        capture_output=True,
        text=True,
    )
    return [json.loads(line) for line in done.stdout.splitlines()]


def tick(_):
    with Machine(extra=LATENCIES) as machine:
        samples = [
            record
            for record in collect_records(machine, "--count", "31")
            if record["type"] == "sample"
        ][1:]
    starts = [[gpu["at_ms"] for gpu in sample["gpus"]] for sample in samples]
    spread = max(max(at) - min(at) for at in starts)
    lasting = [sample["at_ms"] - min(at) for sample, at in zip(samples, starts)]
    print_row(
        "one tick of 8 GPUs at an H200's latencies: first to last GPU",
        "<= 15 ms",
        f"{spread} ms (30 ticks)",
        spread <= 15,
    )
    print_row(
        "  until the sample of all GPUs was complete",
        "",
        f"{statistics.median(lasting):.0f} ms, {max(lasting)} ms at most",
        None,
    )


def calls(_):
    ticks = 60
    with Machine() as machine:
        machine.environment["GPUMON_FAKE_NVML_COUNTS"] = str(machine.counts)
        collect_records(machine, "--count", str(ticks))
        counts = json.loads(machine.counts.read_text())
    per_gpu = {name: by_gpu.get("0", 0) for name, by_gpu in counts.items() if by_gpu.get("0")}
    every = {name: count for name, count in per_gpu.items() if count >= ticks - 2}
    seldom = {name: count for name, count in per_gpu.items() if name not in every}
    print_row(
        "NVML calls per GPU and tick",
        "listed",
        f"{len(every)} at each tick, {sum(seldom.values()) / ticks:.1f} others on average",
        None,
    )
    for name, count in sorted(per_gpu.items(), key=lambda entry: -entry[1]):
        print(f"        {name:<48} {count / ticks:5.2f}  {REASONS.get(name, 'NO REASON')}")
    without = sorted(name for name in per_gpu if name not in REASONS)
    print_row(
        "  functions with a reason",
        "all",
        f"{len(per_gpu) - len(without)} of {len(per_gpu)}",
        not without,
    )


def hung(_):
    fault = '[[fault]]\ngpu = 5\nkind = "hang"\nfrom_s = 8\n'
    with Machine(extra=fault) as machine, machine.serve() as program:
        flagged, took, stale = None, [], 0
        end = time.monotonic() + 20
        while time.monotonic() < end:
            for path in ("/api/v1/snapshot", "/metrics"):
                body, milliseconds = get(PORT, path)
                took.append(milliseconds)
                if path != "/metrics":
                    sample = json.loads(body)["sample"]
            now = time.time() * 1000
            health = [gpu["health"] for gpu in sample["gpus"]]
            if health[5]["state"] == "hung":
                flagged = flagged or now - health[5]["since_ms"]
                stale = max(
                    stale, *(now - gpu["at_ms"] for gpu in sample["gpus"] if gpu["index"] != 5)
                )
            time.sleep(0.05)
        ended = program.terminate()
    print_row("one GPU hangs: reported after", "<= 2000 ms", f"{flagged:.0f} ms", flagged <= 2000)
    print_row(
        "  maximum age of readings of other GPUs", "<= 1500 ms", f"{stale:.0f} ms", stale <= 1500
    )
    print_row(
        "  /metrics and snapshot",
        "<= 50 ms",
        f"{statistics.median(took):.1f} ms, {max(took):.1f} ms at most, {len(took)} requests",
        max(took) <= 50,
    )
    print_row(
        "  exit after SIGTERM", "within 2 s", f"{ended:.2f} s", ended is not None and ended <= 2
    )


def day(_):
    hour = 0
    for crate, what in [("gpumon-probe", "collect"), ("gpumon-server", "serve")]:
        example = crate.removeprefix("gpumon-") + "_day"
        command = ["cargo", "run", "--quiet", "--release", "--locked"]
        command += ["--package", crate, "--example", example]
        with Machine() as machine:
            done = subprocess.run(
                command,
                cwd=ROOT,
                env={**os.environ, **machine.environment},
                capture_output=True,
                text=True,
            )
        if done.returncode:
            sys.exit(done.stderr)
        figures = json.loads(done.stdout)
        hour += figures["begin_kb"]
        grown = figures["end_kb"] - figures["begin_kb"]
        print_row(
            f"86,400 samples at full speed: RSS of {what} grows by",
            "< 1 MB",
            f"{grown / 1024:.2f} MB, to {figures['end_kb'] / 1024:.1f} MB, in "
            f"{figures['seconds']:.0f} s",
            grown < 1024,
        )
    print_row(
        "RSS of both after an hour's samples",
        "<= 20 MB",
        f"{hour / 1024:.1f} MB",
        hour <= 20 * 1024,
    )


def look(_):
    if shutil.which("nvidia-smi") is None:
        print("one call compared with nvidia-smi: not measured, because nvidia-smi is missing")
        return
    for busy in (False, True):
        missed.extend(wall.measure_all_ratios(GPUMON, busy=busy))


BENCHES = {
    bench.__name__: bench
    for bench in (
        cost,
        top,
        compare_peers,
        tick,
        calls,
        hung,
        scrapes.scrapes,
        history.history,
        python_api.python,
        run_command.run_command,
        day,
        look,
    )
}
CLIENTS = {bench.__name__: bench for bench in (*clients.BENCHES, wire.wire)}
#: Measurements that only run if they are selected with `--only`.
LONG = {bench.__name__: bench for bench in (churn.churn,)}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=60, help="duration of CPU measurements")
    parser.add_argument(
        "--only",
        choices=[*BENCHES, *CLIENTS, *LONG],
        action="append",
        help="only run this measurement",
    )
    parser.add_argument(
        "--history-seconds",
        type=int,
        default=300,
        help="seconds of history that are collected before clients connect",
    )
    arguments = parser.parse_args()
    for name in arguments.only or [*BENCHES, *CLIENTS]:
        if name in CLIENTS:
            CLIENTS[name](arguments.seconds, arguments.history_seconds)
        else:
            (BENCHES | LONG)[name](arguments.seconds)
    if missed:
        print(f"{len(missed)} measurements are over their targets", file=sys.stderr)
    sys.exit(bool(missed))


if __name__ == "__main__":
    main()
