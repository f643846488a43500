"""Writes a day of history of a simulated fleet into a data folder of Prometheus, as if Prometheus
had scraped the fleet.

    python3 tests/bench/fleet/backfill.py --nodes 1000 --step 300 --hours 24 --data /tmp/fleet/data

The history contains the data that the views of a fleet query: readings that are summed, jobs,
conditions, counters, and the results of the rules in deploy/prometheus/fleet.yml. Their resolution
is --step. `promtool` converts the data into blocks.
"""

from __future__ import annotations

import argparse
import subprocess
import time
from collections import Counter
from pathlib import Path

import targets
import world

#: The interval of the recording rules, in seconds.
QUARTER = 900
BLOCK = 7200
JOB = 'job="gpumon"'

USED = ["gpumon_owner_gpu_seconds", "gpumon_owner_active_gpu_seconds", "gpumon_owner_energy_joules"]


def sample_lines(nodes: int, at: int, used: dict, step: int):
    """Yields all samples of the fleet at the time `at`."""
    ahead = at + world.AHEAD
    sums = Counter()
    owners: dict[str, Counter] = {name: Counter() for name in USED}
    records = at % QUARTER < step
    for number in range(nodes):
        target = f'instance="node{number:04}:9123",{JOB}'
        reachable = world.is_reachable(number, ahead)
        yield f"up{{{target}}} {int(reachable)} {at}"
        if not reachable:
            continue
        name, memory, limit = world.gpu_model(number)
        holders = [world.find_job(number, half, ahead) for half in (0, 1)]
        for index in range(world.GPUS):
            gpu = world.simulate_gpu(number, index, ahead, holders[index // 4])
            on = f'{{gpu="{index}",uuid="{targets.gpu_uuid(number, index)}",{target}'
            sums["gpus:count"] += 1
            yield f"gpumon_gpu_up{on}}} {int(gpu.is_up)} {at}"
            yield f'gpumon_gpu_info{on},name="{name}"}} 1 {at}'
            if not gpu.is_up:
                yield f"gpu:gpumon_gpu_up:zero{on}}} 0 {at}"
                continue
            for metric, read in list(targets.READINGS.items())[:5]:
                yield f"{metric}{on}}} {read(gpu)} {at}"
            yield f"gpumon_gpu_memory_total_bytes{on}}} {memory << 20} {at}"
            sums["gpus_held:sum"] += gpu.job is not None
            sums["gpu_utilization_ratio:sum"] += gpu.utilization / 100
            sums["gpu_memory_used_bytes:sum"] += gpu.memory_bytes
            sums["gpu_memory_total_bytes:sum"] += memory << 20
            sums["gpu_power_watts:sum"] += gpu.power_watts
        for metric, labels, value in targets.owner_series(number, ahead):
            yield f"{metric}{{{labels}{',' if labels else ''}{target}}} {value} {at}"
            family = metric.removesuffix("_total")
            if family in owners:
                before = used.get((number, metric, labels), 0)
                owners[family][labels] += max(0, value - before) if records else 0
                if records:
                    used[number, metric, labels] = value
    for name, value in sums.items():
        yield f"job:gpumon_{name}{{{JOB}}} {value} {at}"
    if records:
        for family, by_owner in owners.items():
            for labels, value in by_owner.items():
                if value > 0:
                    yield f"owner:{family}:increase15m{{{labels},{JOB}}} {value} {at}"
                    if family == USED[0]:
                        yield f"owner:gpumon_owner_nodes:count15m{{{labels},{JOB}}} 1 {at}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--step", type=int, default=300)
    parser.add_argument("--hours", type=int, default=24)
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    end = int(time.time())
    end -= end % arguments.step
    at = end - arguments.hours * 3600
    used: dict = {}
    arguments.data.mkdir(parents=True, exist_ok=True)
    while at < end:
        until = min(end, at - at % BLOCK + BLOCK)
        text = arguments.data.with_suffix(".om")
        with text.open("w") as file:
            while at < until:
                file.writelines(
                    line + "\n" for line in sample_lines(arguments.nodes, at, used, arguments.step)
                )
                at += arguments.step
            file.write("# EOF\n")
        command = [
            "promtool",
            "tsdb",
            "create-blocks-from",
            "openmetrics",
            "--quiet",
            str(text),
            str(arguments.data),
        ]
        subprocess.run(command, check=True)
        text.unlink()
        print(f"until {time.strftime('%H:%M', time.gmtime(at))}", flush=True)


if __name__ == "__main__":
    main()
