"""A measured program: its processor time, its memory, and its exit."""

import os
import signal
import subprocess
import time
import urllib.request
from pathlib import Path


class Program:
    """A process and its children, which are killed at the end of the `with` block."""

    def __init__(self, command, environment, **options):
        self.process = subprocess.Popen(
            command,
            env={**os.environ, **environment},
            stdin=options.get("stdin"),
            stdout=options.get("stdout", subprocess.DEVNULL),
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for pid in reversed(self.tree_pids()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def tree_pids(self):
        """Returns the PIDs of the process and of all its descendants, the process first."""
        found = [self.process.pid]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                try:
                    found += [int(child) for child in task.read_text().split()]
                except OSError:
                    pass
        return found

    def cpu_seconds(self, pids=None):
        """Returns the processor time of all threads in seconds, with nanosecond precision."""
        total = 0
        for pid in pids or self.tree_pids():
            for task in Path(f"/proc/{pid}/task").glob("*/schedstat"):
                try:
                    total += int(task.read_text().split()[0])
                except OSError:
                    pass
        return total / 1e9

    def rss_mb(self):
        return sum(status_kb(pid, "VmRSS") for pid in self.tree_pids()) / 1024

    def cpu_percent(self, seconds, pids=None):
        """Measures the processor time for this many seconds, in percent of one core."""
        begun, at = self.cpu_seconds(pids), time.monotonic()
        time.sleep(seconds)
        return 100 * (self.cpu_seconds(pids) - begun) / (time.monotonic() - at)

    def terminate(self):
        """Sends SIGTERM. Returns the seconds until the process exits; `None` after ten seconds."""
        begun = time.monotonic()
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            return None
        return time.monotonic() - begun


def status_kb(pid, name):
    try:
        for line in Path(f"/proc/{pid}/status").read_text().splitlines():
            if line.startswith(name + ":"):
                return int(line.split()[1])
    except OSError:
        pass
    return 0


def get(port, path, timeout=10):
    """Returns the body of an answer and the milliseconds that it took."""
    begun = time.perf_counter()
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=timeout) as answer:
        body = answer.read()
    return body, 1000 * (time.perf_counter() - begun)


def wait_until_reachable(port, path="/", seconds=20):
    """Waits until the server answers at this path."""
    end = time.monotonic() + seconds
    while True:
        try:
            return get(port, path)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.1)
