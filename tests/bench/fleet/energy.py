"""Compares the energy by user and namespace that `gpumon fleet` reports with the results of PromQL
queries, and fails if they differ by over 0.5 %.

    python3 tests/bench/fleet/energy.py --nodes 1000 --folder /tmp/fleet-energy [--gpumon PATH]

Writes 25 hours of counters of jobs, pods and notebooks on that many nodes. Compares the energy
first without recording rules, then with those of deploy/prometheus/fleet.yml. Needs `prometheus`
and `promtool` (tools/need.py promtool).
"""

from __future__ import annotations

import argparse
import json
import random
import re
import shutil
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
STEP = 300
DAY = 86_400
BLOCK = 7200
#: The comparison takes time, so the samples extend this many seconds into the future.
AHEAD = 3600
WORST = 0.005
PATIENCE_S = 60

COUNTERS = {
    "gpumon_owner_gpu_seconds_total": 1.0,
    "gpumon_owner_active_gpu_seconds_total": 0.7,
    "gpumon_owner_energy_joules_total": 400.0,
}
#: The labels that Prometheus adds to each series of gpumon's pod. If a series already has a label
#: with such a name, Prometheus renames the label of the series, for example `pod` to
#: `exported_pod`.
LABELS_OF_TARGET = 'namespace="monitoring",pod="gpumon",container="gpumon"'


def make_owners(node: int, begin: int, end: int):
    """Yields a tuple for each owner of a node's two GPUs: the labels of the counters, the labels of
    gpumon_gpu_job_info (pods only), start, end, and a factor for the counters.
    """
    chance = random.Random(node)
    for half in (0, 1):
        at, number = begin - chance.randrange(6 * 3600), 0
        while at < end:
            until = at + chance.randrange(900, 6 * 3600)
            user = f"user{int(40 * chance.random() ** 2):02}"
            kind = chance.random()
            name = f"{node}-{half}-{number}"
            info = None
            if kind < 0.5:
                labels = f'user="{user}",slurm_job="{name}"'
            elif kind < 0.8:
                space = f"team{int(12 * chance.random() ** 2):02}"
                labels = f'user="{user}",pod_uid="{name}"'
                if node % 2:
                    info = (
                        f'{labels},{LABELS_OF_TARGET},exported_pod="p{name}",exported_namespace="'
                        f'{space}"'
                    )
                else:
                    info = f'{labels},pod="p{name}",namespace="{space}"'
            else:
                labels = f'user="{user}",notebook="{name}"'
            yield labels, info, at, until, chance.uniform(0.5, 1.6)
            at, number = until + chance.randrange(0, 1800), number + 1


def counter_lines(nodes: list[list[tuple]], at: int, since: int):
    for number, held in enumerate(nodes):
        target = f'job="gpumon",instance="node{number:04}:9123"'
        yield f"up{{{target}}} 1 {at}"
        for gpu in range(2):
            on = f'{target},gpu="{gpu}",uuid="{number}-{gpu}"'
            yield f"gpumon_gpu_up{{{on}}} 1 {at}"
            yield f"gpumon_gpu_utilization_ratio{{{on}}} 0.5 {at}"
        busy = 0.0
        for labels, info, begin, end, factor in held:
            # The counters of a server start at 0 when the server starts, so use before `since` is
            # not counted.
            seconds = min(at, end) - max(begin, since)
            if seconds <= 0:
                continue
            busy += seconds
            for counter, rate in COUNTERS.items():
                yield f"{counter}{{{target},{labels}}} {seconds * rate * factor:.1f} {at}"
            if info is not None and begin <= at < end:
                yield f'gpumon_gpu_job_info{{{target},gpu="0",uuid="{number}-0",{info}}} 1 {at}'
        yield f"gpumon_unheld_gpu_seconds_total{{{target}}} {2 * (at - since) - busy:.1f} {at}"
        yield (
            f"gpumon_unheld_energy_joules_total{{{target}}} {80 * (2 * (at - since) - busy):.1f} "
            f"{at}"
        )


def write_counters(folder: Path, nodes: int, end: int) -> None:
    begin = end - AHEAD - DAY - 3600
    held = [list(make_owners(number, begin, end)) for number in range(nodes)]
    at = begin - begin % STEP
    text = folder / "counters.om"
    while at < end:
        until = min(end, at - at % BLOCK + BLOCK)
        with text.open("w") as file:
            while at < until:
                file.writelines(line + "\n" for line in counter_lines(held, at, begin - 6 * 3600))
                at += STEP
            file.write("# EOF\n")
        command = [
            "promtool",
            "tsdb",
            "create-blocks-from",
            "openmetrics",
            "--quiet",
            str(text),
            str(folder / "data"),
        ]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    text.unlink()


def write_rules(folder: Path, address: str, now: int) -> None:
    """Evaluates the usage rules for the last day, and adds the results to Prometheus' data, which
    contains the counters.
    """
    text = (ROOT / "deploy/prometheus/fleet.yml").read_text()
    usage = re.search(r"  - name: gpumon-usage\n.*?(?=\n  - name: )", text, re.DOTALL).group(0)
    rules = folder / "usage.yml"
    rules.write_text(f"groups:\n{usage}\n")
    command = [
        "promtool",
        "tsdb",
        "create-blocks-from",
        "rules",
        "--url",
        address,
        "--eval-interval",
        "15m",
    ]
    command += [
        "--start",
        str(now - DAY),
        "--end",
        str(now),
        "--output-dir",
        str(folder / "data"),
        str(rules),
    ]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


@contextmanager
def start_prometheus(folder: Path):
    (folder / "prometheus.yml").write_text("{}")
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        "prometheus",
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
    ]
    command += [
        f"--web.listen-address={address}",
        "--log.level=error",
        "--storage.tsdb.retention.time=10y",
    ]
    with subprocess.Popen(command) as server:
        try:
            wait_until_answered(f"http://{address}/-/ready")
            yield f"http://{address}"
        finally:
            server.terminate()


def wait_until_answered(url: str) -> None:
    end = time.monotonic() + PATIENCE_S
    while True:
        try:
            urllib.request.urlopen(url, timeout=5).close()
            return
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def get(url: str):
    with urllib.request.urlopen(url, timeout=120) as answer:
        return json.load(answer)


def query_usage(gpumon: str, address: str) -> dict:
    """Returns the answer of `/api/v1/fleet/usage` for a day."""
    command = [
        gpumon,
        "--config",
        "none",
        "fleet",
        "--prometheus",
        address,
        "--listen",
        "127.0.0.1:0",
    ]
    with subprocess.Popen([*command], stderr=subprocess.PIPE, text=True) as server:
        try:
            port = re.search(r":(\d+)/?\s*$", server.stderr.readline()).group(1)
            end = time.monotonic() + 5 * PATIENCE_S
            while True:
                answer = get(f"http://127.0.0.1:{port}/api/v1/fleet/usage?range_s={DAY}")
                if answer["state"] in ("current", "partial") or time.monotonic() > end:
                    return answer
                time.sleep(1)
        finally:
            server.terminate()


def query_promql(address: str, label: str, matchers: str, join: str, at: float) -> dict[str, float]:
    """Returns the energy for each value of `label` in the day before `at`, computed from the
    increase of the counters.
    """
    counter = f"gpumon_owner_energy_joules_total{matchers}"
    expression = f"sum by ({label}) (({counter} - ({counter} offset 1d or {counter} * 0)){join})"
    query = urllib.parse.urlencode({"query": expression, "time": at})
    result = get(f"{address}/api/v1/query?{query}")["data"]["result"]
    return {series["metric"].get(label): float(series["value"][1]) for series in result}


def compare_energy(what: str, gpumon: str, address: str) -> float:
    """Returns the largest relative difference between the energy that gpumon reports and the result
    of PromQL, over all users and namespaces.
    """
    answer = query_usage(gpumon, address)
    at = answer["to_ms"] / 1000
    exported = (
        'label_replace(gpumon_gpu_job_info{pod_uid!="",exported_namespace!=""}, "namespace", '
        '"$1", "exported_namespace", "(.*)")'
    )
    own = 'gpumon_gpu_job_info{pod_uid!="",exported_namespace="",namespace!=""}'
    infos = f"group by (pod_uid, namespace) (max_over_time(({exported} or {own})[25h:5m]))"
    join = f" * on (pod_uid) group_left (namespace) {infos}"
    worst = 0.0
    listed, ago = len(answer["owners"]), time.time() - at
    print(
        f"{what}: {answer['state']}, until {ago:.0f} s ago, {listed} of {answer['owners_total']} "
        f"owners are listed"
    )
    for problem in answer["problems"]:
        print(f"  {problem}")
    listed = sum(owner["energy_joules"] for owner in answer["owners"])
    for groups, truth in (
        (answer["users"], query_promql(address, "user", "", "", at)),
        (answer["namespaces"], query_promql(address, "namespace", '{pod_uid!=""}', join, at)),
    ):
        found = {group["name"]: group["energy_joules"] for group in groups}
        differences = {
            name: abs(found.get(name, 0.0) / energy - 1)
            for name, energy in truth.items()
            if energy > 0
        }
        name, difference = max(differences.items(), key=lambda item: item[1])
        worst = max(worst, difference)
        sums = [sum(energies.values()) / 3.6e9 for energies in (found, truth)]
        print(
            f"  {len(truth)} groups: {sums[0]:.3f} MWh, PromQL {sums[1]:.3f} MWh; worst {name}: "
            f"{difference:.4%}"
        )
    print(f"  listed owners alone: {listed / 3.6e9:.3f} MWh")
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--gpumon", default=str(ROOT / "target/debug/gpumon"))
    arguments = parser.parse_args()
    folder = arguments.folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    now = int(time.time())
    write_counters(folder, arguments.nodes, now + AHEAD)
    print(f"{arguments.nodes} nodes, created in {time.time() - now:.0f} s", flush=True)
    with start_prometheus(folder) as address:
        worst = compare_energy("counters", arguments.gpumon, address)
        write_rules(folder, address, int(time.time()))
    with start_prometheus(folder) as address:
        worst = max(worst, compare_energy("recording rules", arguments.gpumon, address))
    print(f"worst difference: {worst:.4%}")
    sys.exit(worst > WORST)


if __name__ == "__main__":
    main()
