"""The size of history on disk, the time to read a range of it, and the cost of writing it."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from urllib.parse import urlencode

from machine import PORT, ROOT, Machine
from measure import get
from report import print_row

HOUR_MS = 3_600_000

#: The number of points in a chart that is as wide as a screen.
POINTS = 600


def write_history(folder):
    """Writes 30 days of history of 8 GPUs and their processes. Returns its size."""
    command = [
        "cargo",
        "run",
        "--quiet",
        "--release",
        "--locked",
        "--package",
        "gpumon-history",
        "--example",
        "fill",
        folder,
    ]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if done.returncode:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def measure_spans(_):
    with tempfile.TemporaryDirectory() as folder, Machine() as machine:
        size = write_history(folder)
        megabytes = size["bytes"] / 1e6
        per_value = size["bytes"] / size["values"]
        each = (
            f"{megabytes:.0f} MB, {per_value:.1f} bytes per field (mean, least, largest) of "
            f"{size['rows']} rows"
        )
        print_row(
            "history of 30 days of 8 GPUs on disk, all fields", "<= 600 MB", each, megabytes <= 600
        )
        print_row(
            "  events in this history",
            "hundreds of thousands",
            f"{size['events']}, {size['event_bytes'] / 1e6:.0f} MB",
            size["events"] >= 200_000,
        )
        with machine.serve("--data-dir", folder):
            time.sleep(2)
            for hours, name, target in [
                (1, "an hour", 50),
                (24, "a day", 50),
                (7 * 24, "a week", 150),
                (30 * 24, "a month", 150),
            ]:
                now = int(time.time() * 1000)
                took, points = [], 0
                for attempt in range(15):
                    query = {
                        "from_ms": now - hours * HOUR_MS,
                        "to_ms": now - attempt,
                        "points": POINTS,
                        "metrics": "power.draw_watts",
                    }
                    body, milliseconds = get(PORT, f"/api/v1/history?{urlencode(query)}")
                    took.append(milliseconds)
                    answer = json.loads(body)
                    points = len(answer["times_ms"])
                median = statistics.median(took)
                measured = (
                    f"{median:.0f} ms, {max(took):.0f} ms at most, {points} points of "
                    f"{answer['resolution_ms'] // 1000} s"
                )
                print_row(
                    f"  one field of 8 GPUs over {name}, from disk to JSON",
                    f"<= {target} ms",
                    measured,
                    median <= target,
                )
                if not (POINTS / 2 <= points <= POINTS + 1 and len(answer["gpus"]) >= 8):
                    print_row(
                        "    points, GPUs",
                        f"{POINTS}, 8",
                        f"{points}, {len(answer['gpus'])}",
                        False,
                    )
                if len(answer["events"]) < min(1000, hours * 300):
                    print_row("    events", "up to 1000", len(answer["events"]), False)


def measure_history_cost(seconds):
    """Measures CPU and memory of server and collector with history on disk, and in memory only."""
    figures = {}
    for name, arguments in [("memory", []), ("disk", ["--data-dir"])]:
        with tempfile.TemporaryDirectory() as folder, Machine() as machine:
            with machine.serve(*arguments, *([folder] if arguments else [])) as program:
                time.sleep(15)
                figures[name] = program.cpu_percent(seconds), program.rss_mb()
            if arguments:
                written = sum(entry.stat().st_size for entry in os.scandir(folder))
    (percent, rss), (with_percent, with_rss) = figures["memory"], figures["disk"]
    more, larger = with_percent - percent, with_rss - rss
    print_row(
        "history on disk: CPU compared with memory only, 8 GPUs, 1 Hz",
        "<= +0.1 % of a core",
        f"{more:+.3f} % ({percent:.3f} %)",
        more <= 0.1,
    )
    print_row("  RSS", "<= +3 MB", f"{larger:+.1f} MB ({rss:.1f} MB)", larger <= 3)
    print_row("  written", "something", f"{written / 1000:.0f} kB", written > 0)


def history(seconds):
    measure_spans(seconds)
    measure_history_cost(seconds)
