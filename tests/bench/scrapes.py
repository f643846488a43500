"""The time of `/metrics` when several Prometheus servers scrape at the same time."""

import http.client
import statistics
import threading
import time

from machine import PORT, Machine
from report import print_row

SCRAPERS = 8
#: Seconds between two scrapes. It is a little longer than the sample interval, so that no scrape
#: finds the cached text of an earlier one.
PERIOD_S = 1.03
#: With this option, the server assumes that a reverse proxy is in front of it, and treats each
#: client address as a different user.
PROXY = ("--public-origin", "https://gpus.example.org")


def scrapes(seconds):
    with Machine(gpus=64, processes=4, jobs=True) as machine, machine.serve(*PROXY) as program:
        # Slow readings and owners only appear some seconds after the first sample.
        time.sleep(15)
        for path in ("/metrics", "/metrics/dcgm-4.9"):
            scrape_path(program, path, seconds)


def scrape_path(program, path, seconds):
    """Scrapes with eight clients at the same time, in the same way as Prometheus: persistent
    connections, gzip, OpenMetrics.
    """
    rounds, took, sizes = max(10, round(seconds / PERIOD_S)), [], set()
    together = threading.Barrier(SCRAPERS)

    def run_scraper(number):
        connection = http.client.HTTPConnection(
            "127.0.0.1", PORT, source_address=(f"127.0.0.{number + 2}", 0)
        )
        headers = {
            "Accept-Encoding": "gzip",
            "Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5",
        }
        for _ in range(rounds):
            together.wait()
            begun = time.perf_counter()
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            body = answer.read()
            took.append(1000 * (time.perf_counter() - begun))
            sizes.add(len(body) if answer.status == 200 else 0)
            time.sleep(PERIOD_S)

    scrapers = [threading.Thread(target=run_scraper, args=(number,)) for number in range(SCRAPERS)]
    begun = program.cpu_seconds(program.tree_pids()[:1])
    for one in scrapers:
        one.start()
    for one in scrapers:
        one.join()
    cpu = 1000 * (program.cpu_seconds(program.tree_pids()[:1]) - begun) / rounds
    took.sort()
    p99 = took[int(len(took) * 0.99)]
    what = f"{path}, 64 GPUs with owners, {SCRAPERS} scrapers at once"
    print_row(
        f"{what}: p99",
        "<= 15 ms",
        f"{p99:.1f} ms, {statistics.median(took):.1f} ms at p50, of {len(took)}",
        p99 <= 15,
    )
    print_row("  all answered, KB compressed", "all", f"{max(sizes) / 1000:.0f}", min(sizes) > 0)
    print_row("  CPU of serve per second, with the samples", "", f"{cpu:.1f} ms", None)
