"""Serves the metrics of a simulated fleet to Prometheus. The metrics of each node are at
/NUMBER/metrics.

    python3 tests/bench/fleet/targets.py --port 9700 --nodes 1000 --gpumon target/release/gpumon
        [--names dcgm] [--few]

The text comes from a real `gpumon serve` with one simulated node. Its UUIDs, readings, jobs and
conditions are replaced by those of each node. `--few` leaves out the metrics that no view and no
rule of a fleet reads.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

import world

READINGS = {
    "gpumon_gpu_utilization_ratio": lambda gpu: gpu.utilization / 100,
    "gpumon_gpu_memory_used_bytes": lambda gpu: gpu.memory_bytes,
    "gpumon_gpu_power_watts": lambda gpu: round(gpu.power_watts, 1),
    "gpumon_gpu_temperature_celsius": lambda gpu: round(gpu.celsius),
    "gpumon_gpu_processes": lambda gpu: int(gpu.job is not None),
    "gpumon_gpu_up": lambda gpu: int(gpu.is_up),
    "DCGM_FI_DEV_GPU_UTIL": lambda gpu: gpu.utilization,
    "DCGM_FI_DEV_FB_USED": lambda gpu: round(gpu.memory_bytes / (1 << 20)),
    "DCGM_FI_DEV_POWER_USAGE": lambda gpu: round(gpu.power_watts, 1),
    "DCGM_FI_DEV_GPU_TEMP": lambda gpu: round(gpu.celsius),
}
#: Metrics that are generated for each node and not copied from the template.
OWN = re.compile(r"gpumon_(owner_|unheld_|gpu_job|condition_severity|gpu_xid)")
#: The metrics that `--few` keeps.
FEW = re.compile(
    r"gpumon_(gpu_(up|info|utilization_ratio|memory_used_bytes|memory_total_bytes|power_watts|"
    r"power_limit_watts|"
    r"temperature_celsius|processes)|sample_age_seconds|collector_state|build_info)\b|DCGM_"
)
SERIES = re.compile(r'^(\w+)\{(?:[^}]*?)gpu="(\d+)"[^}]*?(?:uuid|UUID)="([^"]+)"')
#: Metrics that also exist for a GPU that does not respond.
LOST_KEEPS = re.compile(r"gpumon_(gpu_(up|state|sample_age|info|xid)|condition)")


def read_template(program: str, path: str) -> list[str]:
    """Returns the lines of a real server with eight busy GPUs."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "busy.toml").write_text('gpus = 8\n[[gpu]]\nindex = 0\nprofile = "training"\n')
        command = [
            program,
            "--source",
            f"sim:{folder}/busy.toml",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--no-control",
        ]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server:
            try:
                port = re.search(r":(\d+)/?\s*$", server.stderr.readline()).group(1)
                time.sleep(8)
                with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as answer:
                    return answer.read().decode().splitlines()
            finally:
                server.kill()


def gpu_uuid(node: int, index: int) -> str:
    return f"GPU-{node:08x}-0000-4000-8000-{index:012x}"


class Node:
    """The text of one node. Parts that change with each scrape are between constant parts."""

    def __init__(self, number: int, lines: list[str]) -> None:
        self.number = number
        name, memory, limit = world.gpu_model(number)
        constant = {
            "gpumon_gpu_memory_total_bytes": memory << 20,
            "gpumon_gpu_power_limit_watts": limit,
        }
        #: The parts of the text. Each part is a tuple of four values: the constant text before a
        #: line; the line, or only its beginning if it ends with a reading; the GPU; and the name of
        #: the metric that provides the reading.
        self.parts: list[tuple[str, str, int, str | None]] = []
        kept: list[str] = []
        for line in lines:
            found = SERIES.match(line)
            metric, index = (
                (found.group(1), int(found.group(2)))
                if found
                else (line.split("{")[0].split(" ")[0], -1)
            )
            if OWN.match(metric) or line == "# EOF":
                continue
            if found:
                line = line.replace(found.group(3), gpu_uuid(number, index))
                line = line.replace("NVIDIA H200", name)
            head = line.rpartition(" ")[0]
            if metric in constant and found:
                line = f"{head} {constant[metric]}"
            if found and (metric in READINGS or not LOST_KEEPS.match(metric)):
                is_reading = metric in READINGS
                part = (
                    "\n".join(kept),
                    head if is_reading else line,
                    index,
                    metric if is_reading else None,
                )
                self.parts.append(part)
                kept = []
            else:
                kept.append(line)
        self.rest = "\n".join(kept)

    def text(self, at: int) -> str:
        holders = [world.find_job(self.number, half, at) for half in (0, 1)]
        gpus = [
            world.simulate_gpu(self.number, index, at, holders[index // 4])
            for index in range(world.GPUS)
        ]
        out: list[str] = []
        for before, line, index, metric in self.parts:
            if before:
                out.append(before)
            gpu = gpus[index]
            if metric is None:
                if gpu.is_up:
                    out.append(line)
            elif gpu.is_up or metric == "gpumon_gpu_up":
                out.append(f"{line} {READINGS[metric](gpu)}")
        out.append(self.rest)
        return "\n".join(out)


def owner_lines(number: int, at: int) -> list[str]:
    """Returns the lines of jobs, energy by owner, conditions and Xids, grouped by metric as the
    format requires.
    """
    lines: dict[str, list[str]] = {}
    for name, labels, value in owner_series(number, at):
        lines.setdefault(name, []).append(
            f"{name}{{{labels}}} {value}" if labels else f"{name} {value}"
        )
    return [line for group in lines.values() for line in group]


def owner_series(number: int, at: int):
    """Yields the metrics of `owner_lines` one by one: name, labels, value."""
    unheld = 0.0
    limit = world.gpu_model(number)[2]
    begin = at - at % world.DAY
    for half in (0, 1):
        holder = world.find_job(number, half, at)
        busy = 0
        for job in world.list_jobs_of_day(number, half, at // world.DAY):
            held = max(0, min(at, job.end) - job.start) * 4
            if held == 0:
                continue
            active = max(0, min(at, job.end, job.idle_from) - job.start) * 4
            busy += held
            owner = f'user="{job.user}",slurm_job="{job.number}"'
            joules = limit * (0.17 * (held - active) + (0.2 + 0.0075 * job.utilization) * active)
            yield "gpumon_owner_gpu_seconds_total", owner, held
            yield (
                "gpumon_owner_active_gpu_seconds_total",
                owner,
                round(active * job.utilization / 100),
            )
            yield "gpumon_owner_exclusive_gpu_seconds_total", owner, held
            yield "gpumon_owner_energy_joules_total", owner, round(joules)
        unheld += (at - begin) * 4 - busy
        for index in range(half * 4, half * 4 + 4):
            on = f'gpu="{index}",uuid="{gpu_uuid(number, index)}"'
            if holder is not None:
                labels = (
                    f'{on},user="{holder.user}",slurm_job="{holder.number}",pod_uid="",container="'
                    f'",unit="",notebook=""'
                )
                yield "gpumon_gpu_job_info", labels, 1
                if holder.is_idle(at) and at - holder.idle_from > 900:
                    yield "gpumon_condition_severity", f'{on},condition="held_idle"', 1
                if holder.utilization > 92 and not holder.is_idle(at):
                    yield "gpumon_condition_severity", f'{on},condition="throttled"', 1
            if not world.is_up(number, index, at):
                yield "gpumon_condition_severity", f'{on},condition="lost"', 3
            code = world.gpu_xid(number, index)
            if code is not None:
                yield "gpumon_gpu_xid", f'{on},code="{code}"', int(at % world.DAY > world.DAY // 2)
                yield "gpumon_condition_severity", f'{on},condition="xid"', 3
                yield (
                    "gpumon_gpu_xid_errors_total",
                    f'{on},code="{code}"',
                    1 + (at % world.DAY) // 30_000,
                )
    yield "gpumon_unheld_gpu_seconds_total", "", max(0, round(unheld))
    yield "gpumon_unheld_energy_joules_total", "", max(0, round(unheld * limit * 0.11))


async def serve(arguments: argparse.Namespace) -> None:
    is_dcgm = arguments.names == "dcgm"
    lines = read_template(arguments.gpumon, "/metrics/dcgm" if is_dcgm else "/metrics")
    if arguments.few:
        lines = [line for line in lines if FEW.match(line)]
    nodes: dict[int, Node] = {}

    async def serve_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                request = await reader.readuntil(b"\r\n\r\n")
                number = int(request.split(b"/", 2)[1])
                at = int(time.time()) + world.AHEAD
                if not world.is_reachable(number, at):
                    return
                if number not in nodes:
                    nodes[number] = Node(number, lines)
                text = nodes[number].text(at) + "\n"
                if not is_dcgm:
                    text += "\n".join(owner_lines(number, at)) + "\n"
                body = text.encode()
                head = (
                    f"HTTP/1.1 200 OK\r\nContent-Type: text/plain; "
                    f"version=0.0.4\r\nContent-Length: {len(body)}\r\n\r\n"
                )
                writer.write(head.encode() + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(serve_connection, "127.0.0.1", arguments.port, backlog=4096)
    print(
        f"serving {arguments.nodes} nodes at http://127.0.0.1:{arguments.port}/0/metrics",
        flush=True,
    )
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--port", type=int, default=9700)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--gpumon", default="target/release/gpumon")
    parser.add_argument("--names", choices=["gpumon", "dcgm"], default="gpumon")
    parser.add_argument(
        "--few", action="store_true", help="serve only metrics that views and rules use"
    )
    asyncio.run(serve(parser.parse_args()))
