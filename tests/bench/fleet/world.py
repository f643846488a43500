"""A simulated fleet: the activity of each half of each node at any time, the same in every process.

A node has eight GPUs in two halves. Each half runs one job after another, with pauses between them.
A job has a user, a load and memory, and is sometimes idle while it holds memory. All of this
follows from the number of the node.
"""

from __future__ import annotations

import bisect
import random
from dataclasses import dataclass
from functools import cache

GPUS = 8
DAY = 86_400
#: The number of seconds by which the fleet's clock is ahead. So a part of the simulated day has
#: already passed at any hour of a working day.
AHEAD = 15 * 3600

#: Name, memory in MiB and power limit in watts. Three in five nodes have the first model.
MODELS = [
    ("NVIDIA H200", 143_771, 700),
    ("NVIDIA H100 80GB HBM3", 81_559, 700),
    ("NVIDIA A100-SXM4-40GB", 40_960, 400),
]
USERS = [
    f"{name}{number}"
    for number in range(1, 7)
    for name in ("ana", "bob", "chen", "dana", "eva", "farid", "gil", "hana")
]


@dataclass(frozen=True)
class Job:
    start: int
    end: int
    user: str
    number: int
    utilization: float
    memory: float
    """The part of a GPU's memory that the job uses, from 0 to 1."""
    idle_from: int
    """The time from which the job holds memory without computing."""

    def is_idle(self, at: int) -> bool:
        return at >= self.idle_from


@dataclass(frozen=True)
class Gpu:
    utilization: float
    memory_bytes: float
    power_watts: float
    celsius: float
    job: Job | None
    is_up: bool = True


def gpu_model(node: int) -> tuple[str, int, int]:
    return MODELS[(0, 0, 0, 1, 1, 0, 0, 1, 0, 2)[node % 10]]


def is_reachable(node: int, at: int) -> bool:
    """Returns whether a node answers. Every 250th node does not answer in the last quarter of each
    day, nor in the first quarter of an hour of every two hours.
    """
    return node % 250 != 249 or at % DAY < (DAY * 3) // 4 and at % 7200 > 900


def is_up(node: int, gpu: int, at: int) -> bool:
    return not (node % 190 == 77 and gpu == node % GPUS and at % DAY > 3600 * 5)


def gpu_xid(node: int, gpu: int) -> int | None:
    """Returns the Xid of a GPU, if it has one."""
    return (48, 63, 79, 94, 13)[node % 5] if node % 71 == 33 and gpu == node % 7 else None


@cache
def list_jobs_of_day(node: int, half: int, day: int) -> list[Job]:
    """Returns all jobs that start within a day. The last one may continue into the next day."""
    chance = random.Random(f"{node}/{half}/{day}")
    at, found = day * DAY + chance.randrange(7200), []
    while at < (day + 1) * DAY:
        lasts = chance.randrange(2 * 3600, 11 * 3600)
        begins, ends = at, min(at + lasts, (day + 1) * DAY + 3600)
        forgotten = chance.random() < 0.12
        found.append(
            Job(
                begins,
                ends,
                chance.choice(USERS),
                100_000 + (node * 2 + half) * 16 + len(found) + (day % 7) * 40_000,
                chance.uniform(35, 100),
                chance.uniform(0.15, 0.97),
                begins + lasts // 4 if forgotten else ends,
            )
        )
        at = ends + int(chance.expovariate(1 / 2400))
    return found


def find_job(node: int, half: int, at: int) -> Job | None:
    for day in (at // DAY, at // DAY - 1):
        known = list_jobs_of_day(node, half, day)
        place = bisect.bisect_right(known, at, key=lambda each: each.start) - 1
        if place >= 0 and at < known[place].end:
            return known[place]
    return None


#: Precomputed noise. All GPUs use the same values, each with its own offset.
_NOISE = [random.Random(7).gauss(0, 1) for _ in range(4099)]


def simulate_gpu(node: int, index: int, at: int, holder: Job | None) -> Gpu:
    _, memory, limit = gpu_model(node)
    noise = _NOISE[(node * 31 + index * 7 + at // 15) % 4099]
    warm = 28 + node % 9 + index
    if not is_up(node, index, at):
        return Gpu(0, 0, 0, 0, holder, False)
    if holder is None:
        return Gpu(0, 4 << 20, limit * 0.11 + noise, warm, None)
    held = holder.memory * memory * (1 << 20)
    if holder.is_idle(at):
        return Gpu(0, held, limit * 0.17 + noise, warm + 4, holder)
    load = min(100, max(0, round(holder.utilization + 6 * noise)))
    return Gpu(
        load,
        held,
        min(limit, limit * (0.2 + 0.75 * load / 100) + 5 * noise),
        warm + 38 * load / 100,
        holder,
    )
