"""Typical code of users with the expected types: every public name, checked by mypy and pyright,
and never run.
"""

from __future__ import annotations

import datetime
from collections import deque
from collections.abc import AsyncGenerator, Generator
from typing import Any

import gpumon
import gpumon.trackers
from typing_extensions import assert_type


@gpumon.measure
def step(x: int) -> str:
    return str(x)


@gpumon.measure("named")
async def named(x: int, *, y: float = 0) -> str:
    return str(x)


@gpumon.measure("values", pid=1)
def values() -> Generator[int, None, str]:
    yield 1
    return ""


@gpumon.measure
async def avalues() -> AsyncGenerator[int, None]:
    yield 1


class Model:
    @gpumon.measure("fit")
    def fit(self, x: int) -> str:
        return str(x)

    @staticmethod
    @gpumon.measure
    def static(x: int) -> str:
        return str(x)

    @classmethod
    @gpumon.measure
    def make(cls, x: int) -> Model:
        return cls()

    @property
    @gpumon.measure
    def prop(self) -> int:
        return 3


assert_type(step(1), str)
assert_type(step.measurements, deque[gpumon.Measurement])
assert_type(step.measurements[-1].gpu_s, float | None)
assert_type(step.__name__, str)
assert_type(step.__wrapped__(1), str)
assert_type(list(named.measurements), list[gpumon.Measurement])
assert_type(values.measurements[0].name, str | None)
assert_type(avalues.measurements[0].pid, int | None)
assert_type(Model().fit(1), str)
assert_type(Model.fit(Model(), 1), str)
assert_type(Model.fit.measurements[-1].shared, bool)
assert_type(Model().fit.measurements[-1].shared, bool)
assert_type(Model.static(1), str)
assert_type(Model.make(1), Model)
assert_type(Model().static(1), str)
assert_type(Model().make(1), Model)
assert_type(Model.make.measurements[-1].shared, bool)
assert_type(Model().prop, int)
assert_type(gpumon.measure(lambda: 3)(), int)


async def main() -> None:
    assert_type(await named(1, y=2), str)
    async for value in avalues():
        assert_type(value, int)


with gpumon.measure("train") as m:
    pass
assert_type(m, gpumon.Measurement)
assert_type(m.name, str | None)
assert_type(m.pid, int | None)
assert_type(m.started, datetime.datetime)
assert_type(m.duration_s, float)
assert_type(m.gpu_s, float | None)
assert_type(m.peak_memory_bytes, int | None)
assert_type(m.memory_change_bytes, int | None)
assert_type(m.energy_joules, float | None)
assert_type(m.energy_joules_range, tuple[float, float] | None)
assert_type(m.shared, bool)
assert_type(m.lost, list[str])
assert_type(m.gpus, list[gpumon.GpuCost])
assert_type(m.limits, gpumon.LimitSummary | None)
if m.limits:
    assert_type(m.limits.shares, tuple[gpumon.LimitShare, ...])
    assert_type(m.limits.shares[0].percent, float)
    assert_type(m.limits.text + m.limits.advice, str)
    assert_type(m.limits.evidence, dict[str, float])
assert_type(m.to_dict(), gpumon.Cost)
assert_type(m.to_dict()["peak_memory_bytes"], int | None)
assert_type(m.stored(), gpumon.StoredCost | None)
if stored := m.stored():
    assert_type(stored.get("run"), gpumon.CellRun | None)
assert_type(m.start(), gpumon.Measurement)
m.stop()
m.to_pandas().describe()
print(m.to_polars().columns, m.plot().axes)
for cost in m.gpus:
    assert_type(cost.index, int)
    assert_type(cost.uuid, str | None)
    assert_type(cost.name, str | None)
    assert_type(cost.held_s, float)
    assert_type(cost.gpu_s, float | None)
    assert_type(cost.sm_percent, gpumon.Spread | None)
    assert_type(cost.tensor_percent, gpumon.Spread | None)
    assert_type(cost.dram_percent, gpumon.Spread | None)
    assert_type(cost.energy_joules, gpumon.Energy | None)
    assert_type(cost.shared, bool)
    assert_type(cost.pcie_rx_bytes, int | None)
    assert_type(cost.conditions, tuple[gpumon.Condition, ...])
    for condition in cost.conditions:
        assert_type(
            (condition.kind, condition.from_ms, condition.to_ms, condition.text),
            tuple[str, int, int | None, str],
        )
    if cost.sm_percent is not None:
        assert_type(cost.sm_percent.mean, float)
    if cost.energy_joules is not None:
        least, most, estimate = cost.energy_joules
        assert_type(most, float)

now = gpumon.snapshot()
assert_type(now, gpumon.Snapshot)
assert_type(now.at, datetime.datetime)
assert_type(now.is_simulated, bool)
assert_type(now["host.cpu.busy_percent"], float | None)
assert_type(now.to_dict(), dict[str, Any])
now.to_pandas().describe()
print(now.to_polars().columns)
gpu = now.gpus[0]
assert_type(gpu, gpumon.Gpu)
assert_type(gpu.index, int)
assert_type(gpu.uuid, str | None)
assert_type(gpu.name, str | None)
assert_type(gpu.utilization_percent, float | None)
assert_type(gpu.health, str)
assert_type(gpu.conditions, list[str])
assert_type(gpu.absence("x"), str | None)
process = gpu.processes[0]
assert_type(process, gpumon.Process)
assert_type(process.pid, int)
assert_type(process.name, str | None)
assert_type(process.user, str | None)
assert_type(process.memory_bytes, float | None)
assert_type(process.sm_percent, float | None)
assert_type(process.to_dict(), dict[str, Any])
assert_type(gpu.to_dict(), dict[str, Any])

with gpumon.stream() as stream:
    assert_type(stream, gpumon.Stream)
    for later in stream:
        assert_type(later, gpumon.Snapshot)
    stream.close()


async def tasks() -> None:
    async with gpumon.measure() as n:
        assert_type(n, gpumon.Measurement)
    async for later in gpumon.stream(0.5):
        assert_type(later, gpumon.Snapshot)


past = gpumon.history(
    "power.draw_watts", since=datetime.timedelta(seconds=3), until=datetime.datetime.now(), points=3
)
past = gpumon.history(["power.draw_watts"], 60)
assert_type(past, gpumon.History)
assert_type(past.times, list[datetime.datetime])
assert_type(past.resolution_s, float)
assert_type(past.oldest, datetime.datetime | None)
assert_type(past.host, dict[str, gpumon.Series])
assert_type(past.gpus, list[gpumon.GpuHistory])
one = past.gpus[0]
assert_type(
    (one.index, one.uuid, one.name, one.fields), tuple[int, str | None, str | None, list[str]]
)
series = one["power.draw_watts"]
assert_type(series, gpumon.Series)
assert_type(series.values, list[float | None])
assert_type(series.min, list[float | None] | None)
assert_type(series.max, list[float | None] | None)
assert_type(past.events, list[dict[str, Any]])
assert_type(past.to_dict(), dict[str, Any])
past.to_pandas().describe()
print(past.to_polars().columns, past.plot().axes)
gpumon.mark("epoch 3")
assert_type(gpumon.find_gpumon_bin(), str)
errors: list[type[gpumon.GpumonError]] = [gpumon.GpumonNotFound, gpumon.MeasurementError]
errors += [gpumon.ProgramError, gpumon.RequestError]
warning: type[UserWarning] = gpumon.GpumonWarning


class Printer(gpumon.trackers.Tracker):
    def log_metrics(self, metrics: dict[str, float], step: int | None) -> None:
        print(step, metrics)


with Printer() as tracker:
    assert_type(tracker, Printer)
    with tracker.epoch(3):
        pass
assert_type(tracker.totals, dict[str, float])
assert_type(gpumon.trackers.metrics_of(m.to_dict()), dict[str, float])
step("1")  # type: ignore[arg-type]
gpumon.measure(3)  # type: ignore[call-overload]
