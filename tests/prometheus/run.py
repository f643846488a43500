#!/usr/bin/env python3
"""Checks the queries of dashboards and alerts for dcgm-exporter with gpumon's metrics.

    python3 tests/prometheus/run.py [--gpumon target/debug/gpumon]

Sends the queries to a real Prometheus that scrapes gpumon. Prints each query, and whether it has
data. queries.toml has the sources of the queries, and lists those without data. Needs `prometheus`
(Debian: apt-get install prometheus) and the fake NVML library (cargo build -p fake-nvml).
"""

import argparse
import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.parse
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path

import fleet_queries

HERE = Path(__file__).resolve().parent
LIBRARY = HERE.parents[1] / "target/debug/libfake_nvml.so"
QUERIES = tomllib.loads((HERE / "queries.toml").read_text())

#: The paths that are scraped. The keys are the names of Prometheus' jobs.
PATHS = {"gpumon": "/metrics", "dcgm": "/metrics/dcgm", "dcgm-4.9": "/metrics/dcgm-4.9"}
#: The number of scrapes. A rate needs several scrapes, and slow readings must have been read before
#: the last scrape.
SCRAPES = 8
PATIENCE_S = 60


@contextmanager
def start_gpumon(program, folder):
    """Start a server with the busy scenario, to which this process is added as a user of a GPU.
    Yield the server's port.
    """
    process = f'[[process]]\ngpu = 1\npid = {os.getpid()}\nmemory = "2 GiB"\nsm_percent = 40\n'
    scenario = Path(folder, "scenario.toml")
    scenario.write_text((HERE / "scenario.toml").read_text() + process)
    environment = {
        "GPUMON_NVML_LIB": str(LIBRARY),
        "GPUMON_FAKE_NVML_SCENARIO": str(scenario),
        "GPUMON_CONTROL": str(Path(folder, "control.sock")),
    }
    command = [program, "serve", "--listen", "127.0.0.1:0", "--no-control"]
    with subprocess.Popen(
        command, env={**os.environ, **environment}, stderr=subprocess.PIPE, text=True
    ) as server:
        try:
            first = server.stderr.readline()
            yield int(re.search(r":(\d+)/?\s*$", first).group(1))
        finally:
            server.kill()


@contextmanager
def start_prometheus(targets, folder):
    """Yield the address of a Prometheus that scrapes these paths every second."""
    jobs = [
        {
            "job_name": name,
            "metrics_path": path,
            "static_configs": [{"targets": [f"127.0.0.1:{port}"]}],
        }
        for name, (port, path) in targets.items()
    ]
    # The configuration is written as JSON, because every JSON document is also valid YAML.
    times = {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"}
    configuration = {
        "global": times,
        "scrape_configs": jobs,
        "rule_files": [str(fleet_queries.RULES)],
    }
    Path(folder, "prometheus.yml").write_text(json.dumps(configuration))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    command = [
        "prometheus",
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
    ]
    command += [f"--web.listen-address={address}", "--log.level=error"]
    try:
        server = subprocess.Popen(command)
    except FileNotFoundError:
        sys.exit(
            "prometheus is missing: install it with `python3 tools/need.py promtool`, then try "
            "again"
        )
    try:
        yield f"http://{address}"
    finally:
        server.kill()
        server.wait()


def request_api(address, path, **parameters):
    query = urllib.parse.urlencode(parameters)
    with urllib.request.urlopen(f"{address}{path}?{query}", timeout=PATIENCE_S) as answer:
        return json.load(answer)["data"]


def run_query(address, expression):
    """Return the current series of an expression."""
    return request_api(address, "/api/v1/query", query=expression)["result"]


def wait_for_scrapes(address):
    """Wait until each job has been scraped often enough."""
    end = time.monotonic() + PATIENCE_S
    counts = {}
    while time.monotonic() < end:
        try:
            found = run_query(
                address,
                f"count_over_time(up[{PATIENCE_S}s]) and up == 1 and on (job) count by (job) "
                f"({{gpu='0'}})",
            )
        except OSError:
            found = []
        counts = {series["metric"]["job"]: int(series["value"][1]) for series in found}
        if len(counts) == len(PATHS) and min(counts.values()) >= SCRAPES:
            return
        time.sleep(0.5)
    raise TimeoutError(f"Prometheus has only scraped {counts or 'nothing'} in {PATIENCE_S} s")


def add_bool(expression):
    """Return the expression with comparisons that return 0 or 1. Without this, an expression has no
    data while its comparison is false.
    """
    outside = re.split(r"(\{[^}]*\})", expression)
    return "".join(
        part
        if part.startswith("{")
        else re.sub(r"(==|!=|>=|<=|>|<)(?!\s*bool)\s*", r"\1 bool ", part)
        for part in outside
    )


def list_queries():
    """Yield each query, its source, and the reason if it may have no data."""
    for old, new in QUERIES["dashboard"]:
        yield "dashboard 12239, until 4.8", old, None
        yield "dashboard 12239, 4.9", new, None
    for alerts in QUERIES["alerts"]:
        for expression in alerts["expressions"]:
            yield "alert", expression, alerts.get("missing")


def find_differences(program, tell=print):
    """Return the differences from queries.toml. Print whether each query has data."""
    wrong, counts = [], {}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        port = stack.enter_context(start_gpumon(program, folder))
        address = stack.enter_context(
            start_prometheus({name: (port, path) for name, path in PATHS.items()}, folder)
        )
        wait_for_scrapes(address)
        for kind, expression, missing in list_queries():
            series, holds = run_query(address, add_bool(expression)), run_query(address, expression)
            counts.setdefault(kind, []).append(bool(series))
            state = f"{len(series)} series" if series else f"no data: {missing}"
            tell(
                f"{kind:<26} {state:<12} "
                f"{'holds   ' if holds and kind == 'alert' else '        '} {expression}"
            )
            if bool(series) == (missing is not None):
                wrong.append(f"{expression} has {'data' if series else 'no data'}")
        wrong += check_gpumon_metrics(address)
        wrong += check_fleet_queries(address)
    for kind, had in counts.items():
        tell(f"{kind}: {sum(had)} of {len(had)} have data")
    return wrong


def check_gpumon_metrics(address):
    """Check that Prometheus has read gpumon's own metrics as OpenMetrics. Return the errors."""
    wrong = []
    metadata = request_api(address, "/api/v1/targets/metadata", match_target='{job="gpumon"}')
    known = {entry["metric"]: entry for entry in metadata}
    # Units exist only in OpenMetrics. This format also lists a counter under the name of its metric
    # family, without `_total`.
    energy = known.get("gpumon_gpu_energy_joules") or known.get("gpumon_gpu_energy_joules_total")
    if not energy or (energy["type"], energy["unit"]) != ("counter", "joules"):
        wrong.append(f"gpumon_gpu_energy_joules is {energy}")
    for expression in [
        'gpumon_gpu_throttled{reason="sync_boost"} == 0',
        'gpumon_condition{condition="nv_link_down"} == 1',
        "changes(gpumon_condition[1m])",
        'gpumon_gpu_state{state="lost"} == 0',
        # This query joins the utilization of each GPU with its users.
        "gpumon_gpu_utilization_ratio * on (gpu, uuid) group_right () gpumon_gpu_job_info",
        "increase(gpumon_owner_energy_joules_total[1m])",
    ]:
        if not run_query(address, expression):
            wrong.append(f"{expression} has no data")
    return wrong


def check_fleet_queries(address):
    """Check that Prometheus accepts the queries of `gpumon fleet`, and that most have data. Return
    the errors.
    """
    wrong = []
    for expression in fleet_queries.read_queries():
        try:
            run_query(address, expression)
            series = run_query(address, add_bool(expression))
        except urllib.error.HTTPError as refusal:
            wrong.append(f"{expression} is refused: {json.load(refusal)['error']}")
            continue
        if not series and not fleet_queries.find_reason(expression):
            wrong.append(f"{expression} has no data")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--gpumon", default=str(HERE.parents[1] / "target/debug/gpumon"), help="path of gpumon"
    )
    wrong = find_differences(parser.parse_args().gpumon)
    for line in wrong:
        print(f"WRONG: {line}", file=sys.stderr)
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
