"""The behavior of one server with many clients and with hostile clients. The GPUs are those of the
fake NVML library.

`gpumon-load` (tests/bench/load/) measures what clients receive, and reports its own processor time.
The load generator and the server share the machine, so on a machine with few cores, the load
generator itself may cause late deliveries.
"""

import contextlib
import http.client
import json
import os
import signal
import statistics
import subprocess
import threading
import time
from typing import NamedTuple

from machine import PORT, ROOT, Machine
from measure import get, status_kb
from report import print_row

#: The number of seconds between the end of the last client and the measurement of the server's
#: memory.
REST = 15

#: The maximum number of seconds until the server has closed a connection that sends nothing. The
#: server closes it after 10 s.
CLOSED_WITHIN = 15

LOAD = ROOT / "target/release/gpumon-load"


def clients(seconds, history_seconds):
    measure_crowd(1_000, 8, seconds, history_seconds, cpu=0.9, rss=12, back=3)


def many_clients(seconds, history_seconds):
    measure_crowd(10_000, 8, seconds, history_seconds, p50=30, p99=100, rss=150, back=15)


def many_gpus(seconds, history_seconds):
    measure_crowd(1_000, 64, seconds, history_seconds, p99=100, rss=40)


def measure_crowd(
    clients, gpus, seconds, history_seconds, cpu=None, p50=None, p99=None, rss=None, back=None
):
    # A hello frame contains the history, so the server must have some history before the clients
    # connect.
    cost = measure_under_load(gpus, history_seconds, seconds, "stream", f"--clients={clients}")
    said, idle = cost.said, cost.idle
    stream, what = said["stream"], f"{clients:,} clients, {gpus} GPUs, 1 Hz"
    served = said["clients"] == clients and said["ended"] == 0
    print_row(f"{what}: served", "all", f"{said['clients']:,}, {said['ended']} ended", served)
    print_row(
        "  CPU of serve",
        format_limit(cpu, "% of a core"),
        f"{cost.percent:.2f} %",
        is_within(cost.percent, cpu),
    )
    kernel, read = stream["kernel_ms"], stream["read_ms"]
    print_row(
        "  delivery, p50",
        format_limit(p50, "ms"),
        f"{format_delays(kernel, read, 'p50')}",
        is_within(kernel["p50"], p50),
    )
    print_row(
        "  delivery, p99",
        format_limit(p99, "ms"),
        f"{format_delays(kernel, read, 'p99')}",
        is_within(kernel["p99"], p99),
    )
    print_row(
        "  samples lost", "0", f"{stream['lost']:,} of {stream['expected']:,}", stream["lost"] == 0
    )
    grown = cost.full - idle
    print_row(
        "  RSS of serve above idle",
        format_limit(rss, "MB"),
        f"{grown:.1f} MB (idle {idle:.1f} MB)",
        is_within(grown, rss),
    )
    left = cost.after - idle
    print_row(
        f"    {REST} s after all have disconnected",
        format_limit(back, "MB"),
        f"{left:.1f} MB",
        is_within(left, back),
    )
    rate, own = said["bytes_per_s"] / 1e6, 100 * said["own_cpu_s"] / seconds
    print_row(
        "  RSS of serve at its peak, of collect",
        "",
        f"{cost.peak:.1f} MB, {cost.collector:.1f} MB",
        None,
    )
    print_row(
        "  sent, and CPU of the load generator", "", f"{rate:.1f} MB/s, {own:.1f} % of a core", None
    )


def half_open(*_):
    """Measures connections that send nothing or half a request."""
    half_open_connections(1_100, descriptors=1_024)
    half_open_connections(1_100, "--partial", descriptors=1_024)
    half_open_connections(10_000, "--partial")


def half_open_connections(connections, *arguments, descriptors=None):
    # The server raises its own soft limit to the hard limit, so both limits are set.
    limit = ["prlimit", f"--nofile={descriptors}:{descriptors}"] if descriptors else []
    with Machine() as machine, machine.serve(before=limit) as program:
        time.sleep(5)
        idle, _ = rss_mb(program)
        with Load("half-open", f"--connections={connections}", "--seconds=30", *arguments) as load:
            load.wait_until_connected()
            asked = SteadyClient(PORT)
            time.sleep(2)
            full, _ = rss_mb(program)
            said = load.read_result()
            slowest = asked.end()
        time.sleep(REST)
        after, _ = rss_mb(program)
    at = f" at nofile {descriptors:,}" if descriptors else ""
    sent = "half a request" if arguments else "nothing"
    what = f"{connections:,} half-open{at}, {sent}"
    closed = said["closed_after_ms"]["max"]
    ended = (
        f"{said['closed']:,}, the last after {closed / 1000:.1f} s" if closed else "none in 30 s"
    )
    is_ended = said["still_open"] == 0 and (closed or 0) <= 1000 * CLOSED_WITHIN
    print_row(f"{what}: ended", f"all, <= {CLOSED_WITHIN} s", ended, is_ended)
    answers = f"{asked.answered} of {asked.asked}, slowest {slowest:.0f} ms"
    all_in_time = asked.answered == asked.asked and slowest <= 1000
    print_row("  other clients get responses meanwhile", "all, <= 1 s", answers, all_in_time)
    print_row("  RSS of serve above idle", "", f"{full - idle:.1f} MB", None)
    print_row(
        f"    {REST} s after all connections have ended",
        "<= 3 MB",
        f"{after - idle:.1f} MB",
        after - idle <= 3,
    )


def readers(seconds, history_seconds):
    """Measures a server of 64 GPUs while 32 readers request its longest history and one client
    receives the stream.
    """
    cost = measure_under_load(64, history_seconds, seconds, "readers", "--readers=32")
    said, grown, left = cost.said, cost.full - cost.idle, cost.after - cost.idle
    stream, read = said["stream"], said["stream"]["read_ms"]
    came = (
        f"{read['p50']:.0f} ms, {read['p99']:.0f} ms at p99" if stream["samples"] else "none came"
    )
    in_time = bool(stream["samples"]) and read["p99"] <= 100
    print_row(
        f"32 readers of {history_seconds} s of 64 GPUs: delivery to a stream",
        "<= 100 ms at p99",
        came,
        in_time,
    )
    # The number of lost samples normally follows from gaps in the sequence numbers. A client that
    # receives nothing sees no gaps.
    lost = max(stream["lost"], round(seconds) - 1 - stream["received"])
    print_row("  lost samples of this stream", "0", f"{lost} of {round(seconds)}", lost == 0)
    print_row(
        "  answers",
        "",
        f"{said['answers_per_s']:.1f}/s, {format_statuses(said)}, "
        f"{said['bytes_per_s'] / 1e6:.1f} MB/s",
        None,
    )
    answer = said["answer_ms"]
    if said["answers"]:
        print_row(
            "  duration of a response",
            "",
            f"{answer['p50']:.0f} ms, {answer['p99']:.0f} ms at p99",
            None,
        )
    print_row(
        "  CPU of serve",
        "",
        f"{cost.percent:.0f} % of a core, load {100 * said['own_cpu_s'] / seconds:.0f} %",
        None,
    )
    print_row(
        "  increase in RSS of serve", "", f"{grown:.1f} MB, {left:.1f} MB {REST} s after", None
    )


def kills(*_, count=50):
    """Kills the collector with SIGKILL many times, each time as soon as samples arrive."""
    gaps, killed, last = [], 0, None
    with Machine() as machine, machine.serve() as program:
        with Load("stream", "--clients=1", f"--seconds={60 * count}", "--print-samples") as load:
            load.wait_until_connected()
            for _line in load.process.stdout:
                now = time.monotonic()
                if last is not None:
                    gaps.append(now - last)
                last = now
                if killed == count:
                    break
                for pid in program.tree_pids()[1:]:
                    os.kill(pid, signal.SIGKILL)
                killed += 1
    gaps.sort()
    print_row(
        f"SIGKILL of the collector {count} times: longest gap in a stream",
        "<= 3 s",
        f"{gaps[-1]:.1f} s, {statistics.median(gaps):.1f} s at p50, {killed} killed",
        gaps[-1] <= 3 and killed == count,
    )


class Cost(NamedTuple):
    """The report of the load generator, and the cost to the server: percent of a core, memory in
    MB.
    """

    said: dict
    percent: float
    idle: float
    collector: float
    full: float
    after: float
    peak: float


def measure_under_load(gpus, history_seconds, seconds, mode, *arguments):
    """Returns the cost of a load of `seconds` on a server with `history_seconds` of history."""
    with Machine(gpus=gpus) as machine, machine.serve() as program:
        time.sleep(history_seconds)
        idle, collector = rss_mb(program)
        with Load(mode, *arguments, f"--seconds={seconds}") as load:
            load.wait_until_connected()
            percent = server_cpu_percent(program, seconds - 1)
            full, _ = rss_mb(program)
            said = load.read_result()
        time.sleep(REST)
        after, _ = rss_mb(program)
        peak = status_kb(program.tree_pids()[0], "VmHWM") / 1024
    return Cost(said, percent, idle, collector, full, after, peak)


class Load:
    """A running load generator."""

    def __init__(self, mode, *arguments):
        command = [LOAD, mode, f"--address=127.0.0.1:{PORT}", *arguments]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def wait_until_connected(self):
        """Waits until all clients are connected."""
        line = self.process.stderr.readline()
        if not line.startswith(("measuring", "opened")):
            raise RuntimeError(f"the load generator failed: {line}{self.process.stderr.read()}")

    def read_result(self):
        output, errors = self.process.communicate()
        if self.process.returncode:
            raise RuntimeError(f"the load generator failed: {errors}")
        return json.loads(output.splitlines()[-1])


class SteadyClient:
    """A normal client, which sends a request twice a second on a new connection."""

    def __init__(self, port):
        self.port, self.asked, self.answered, self.slowest = port, 0, 0, 0.0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self.send_requests)
        self.thread.start()

    def send_requests(self):
        while not self.over.wait(0.5):
            self.asked += 1
            begun = time.monotonic()
            with contextlib.suppress(OSError, http.client.HTTPException):
                get(self.port, "/healthz", timeout=CLOSED_WITHIN)
                self.answered += 1
            self.slowest = max(self.slowest, 1000 * (time.monotonic() - begun))

    def end(self):
        self.over.set()
        self.thread.join()
        return self.slowest


def rss_mb(program):
    """Returns the memory of the server and of its collector."""
    serve, *others = program.tree_pids()
    return status_kb(serve, "VmRSS") / 1024, sum(status_kb(pid, "VmRSS") for pid in others) / 1024


def server_cpu_percent(program, seconds):
    """Returns the processor time of the server without its collector, in percent of one core."""
    return program.cpu_percent(seconds, program.tree_pids()[:1])


def format_limit(target, unit):
    return "" if target is None else f"<= {target} {unit}"


def is_within(measured, target):
    return None if target is None else measured is not None and measured <= target


def format_delays(kernel, read, name):
    """Returns the delays until the kernel received a sample and until the client read it."""
    return (
        f"{kernel[name]:.0f} ms (read {read[name]:.0f} ms)"
        if kernel[name] is not None
        else "nothing came"
    )


def format_statuses(said):
    return ", ".join(f"{count} x {status}" for status, count in said["statuses"].items())


BENCHES = (clients, many_clients, many_gpus, half_open, readers, kills)
