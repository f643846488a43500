"""Measures and prints the cost of `gpumon fleet` with a real Prometheus that scrapes a simulated
fleet.

    python3 tests/bench/fleet/backfill.py --data /tmp/fleet/day
    python3 tests/bench/fleet/measure.py --folder /tmp/fleet [--nodes 10000 --few] [--names dcgm]
        [--stay]

Needs `prometheus` (Debian: apt-get install prometheus) and a release build. With --stay, all
programs keep running until Enter is pressed.
"""

from __future__ import annotations

import argparse
import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
TICKS = os.sysconf("SC_CLK_TCK")


def request_url(url: str) -> tuple[float, bytes, int]:
    """Returns the time of a request in seconds, the body, and the number of bytes received."""
    request = urllib.request.Request(url, headers={"Accept-Encoding": "gzip"})
    begun = time.perf_counter()
    with urllib.request.urlopen(request, timeout=120) as answer:
        body = answer.read()
        took = time.perf_counter() - begun
        packed = answer.headers.get("Content-Encoding") == "gzip"
    return took, gzip.decompress(body) if packed else body, len(body)


def query(prometheus: str, expression: str) -> float:
    _, body, _ = request_url(f"{prometheus}/api/v1/query?query={urllib.request.quote(expression)}")
    found = json.loads(body)["data"]["result"]
    return float(found[0]["value"][1]) if found else 0.0


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def resident_mb(pid: int) -> float:
    return (
        int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text()).group(1)) / 1024
    )


def write_prometheus_configuration(folder: Path, nodes: int, port: int, interval: str) -> None:
    """Writes the configuration, rules and targets of Prometheus into the folder."""
    text = (
        (HERE / "prometheus.yml")
        .read_text()
        .replace("scrape_interval: 30s", f"scrape_interval: {interval}")
    )
    (folder / "prometheus.yml").write_text(text)
    shutil.copy(ROOT / "deploy/prometheus/fleet.yml", folder / "fleet.yml")
    targets = [
        {
            "targets": [f"127.0.0.1:{port}"],
            "labels": {
                "instance": f"node{number:04}:9123",
                "__metrics_path__": f"/{number}/metrics",
            },
        }
        for number in range(nodes)
    ]
    (folder / "targets.json").write_text(json.dumps(targets))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--names", choices=["gpumon", "dcgm"], default="gpumon")
    parser.add_argument(
        "--few", action="store_true", help="scrape only metrics that views and rules use"
    )
    parser.add_argument("--gpumon", default=str(ROOT / "target/release/gpumon"))
    parser.add_argument("--interval", default="30s", help="scrape interval")
    parser.add_argument("--data", default="day")
    parser.add_argument(
        "--settle", type=int, default=90, help="seconds to wait for scrapes and recording rules"
    )
    parser.add_argument(
        "--watch", type=int, default=120, help="seconds to measure without and with a client"
    )
    parser.add_argument("--no-browser", action="store_true", help="skip the page in Chromium")
    parser.add_argument("--stay", action="store_true")
    arguments = parser.parse_args()
    folder = arguments.folder
    write_prometheus_configuration(folder, arguments.nodes, 9700, arguments.interval)
    with ExitStack() as running:

        def start(*command: str) -> subprocess.Popen:
            log = running.enter_context((folder / f"{Path(command[0]).name}.log").open("w"))
            process = subprocess.Popen(command, stdout=log, stderr=log)
            running.callback(process.kill)
            return process

        served = [
            "--nodes",
            str(arguments.nodes),
            "--gpumon",
            arguments.gpumon,
            "--names",
            arguments.names,
        ]
        start(
            sys.executable, str(HERE / "targets.py"), *served, *(["--few"] if arguments.few else [])
        )
        prometheus = start(
            "prometheus",
            f"--config.file={folder}/prometheus.yml",
            f"--storage.tsdb.path={folder}/{arguments.data}",
            "--web.listen-address=127.0.0.1:9790",
            "--log.level=warn",
        )
        time.sleep(arguments.settle)
        url = "http://127.0.0.1:9790"
        up, own = query(url, "sum(up)"), request_url(f"{url}/metrics")[1].decode()
        series = float(
            re.search(r"^prometheus_tsdb_head_series (\S+)$", own, re.MULTILINE).group(1)
        )
        print(
            f"Prometheus: {up:.0f} of {arguments.nodes} targets up, {series:,.0f} series in its "
            f"head"
        )
        unwatched = measure_cpu_per_minute(prometheus.pid, arguments.watch)
        fleet = start(arguments.gpumon, "fleet", "--prometheus", url, "--listen", "127.0.0.1:9725")
        door = "http://127.0.0.1:9725"
        wait_until_reachable(f"{door}/healthz")
        first = cpu_seconds(prometheus.pid)
        for path in (
            "fleet",
            "fleet",
            "fleet/usage?range_s=86400",
            "fleet/events?range_s=604800",
            "fleet/history?range_s=86400",
        ):
            took, body, size = request_url(f"{door}/api/v1/{path}")
            answer = json.loads(body)
            print(
                f"{path}: {took * 1000:.0f} ms, {len(body):,} bytes, {size:,} packed, "
                f"{answer['state']} {answer['problems']}"
            )
        print(
            f"Prometheus: {cpu_seconds(prometheus.pid) - first:.2f} s of CPU for these first "
            f"answers"
        )
        if not arguments.no_browser:
            # The server is restarted, so that the requests of the page are the first that it
            # answers.
            fleet.kill()
            fleet.wait()
            fleet = start(
                arguments.gpumon, "fleet", "--prometheus", url, "--listen", "127.0.0.1:9725"
            )
            wait_until_reachable(f"{door}/healthz")
            subprocess.run(
                ["node", str(HERE / "first-picture.mjs"), f"{door}/", str(folder)], check=True
            )
        own = cpu_seconds(fleet.pid)
        watched = measure_cpu_per_minute(
            prometheus.pid, arguments.watch, lambda: request_page_data(door)
        )
        print(
            f"Prometheus: {unwatched:.2f} s of CPU a minute unwatched, {watched:.2f} s watched: "
            f"{watched - unwatched:+.2f} s"
        )
        print(
            f"gpumon fleet: {(cpu_seconds(fleet.pid) - own) * 60 / arguments.watch:.2f} s of CPU "
            f"a minute, {resident_mb(fleet.pid):.1f} MB"
        )
        if arguments.stay:
            input(f"open {door}/ in a browser; press Enter to stop\n")


def request_page_data(door: str) -> None:
    """Sends the requests of a page with all of its views open."""
    request_url(f"{door}/api/v1/fleet")
    for path in ("usage?range_s=86400", "events?range_s=604800", "history?range_s=86400"):
        request_url(f"{door}/api/v1/fleet/{path}")


def measure_cpu_per_minute(pid: int, seconds: int, meanwhile=lambda: None) -> float:
    """Returns the CPU seconds per minute. Pass whole minutes, because recording rules and scrapes
    come in bursts.
    """
    begun = cpu_seconds(pid)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        meanwhile()
        time.sleep(5)
    return (cpu_seconds(pid) - begun) * 60 / seconds


def wait_until_reachable(url: str) -> None:
    for _ in range(100):
        try:
            request_url(url)
            return
        except OSError:
            time.sleep(0.1)
    sys.exit(f"{url} does not answer: see the log of gpumon")


if __name__ == "__main__":
    main()
