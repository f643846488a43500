"""A measurement of GPU use. Starting and ending take no time; the numbers are read when they are
accessed.
"""

from __future__ import annotations

import datetime
import time
from typing import TYPE_CHECKING, Any, Callable, cast

from gpumon._arguments import check_text, check_whole_number
from gpumon._errors import MeasurementError
from gpumon._helper import current_helper
from gpumon._text import escape_unencodable

if TYPE_CHECKING:
    import matplotlib.figure
    import pandas
    import polars

    from gpumon._cost import Cost, Energy, GpuCost, LimitSummary, StoredCost
    from gpumon._helper import Helper, Run
    from gpumon._measure import _P, _R, Measured

#: The highest PID on Linux.
MAX_PID = 1 << 22


class Measurement:
    """The GPU use of a part of a program: of this process and all of its descendants.

    Use it as a context manager, also with ``async with``, as a decorator, or by calling `start` and
    `stop`. Starting and ending only write a short line to the helper program. Numbers are read when
    they are accessed: those so far while the measurement runs, and the final ones after its end.
    The first access after the end waits up to three seconds until the driver has reported all
    samples. Unknown numbers are None, and `lost` gives the reasons.

    Memory, GPU time and energy are those of the whole process tree. If several threads measure at
    the same time, each measurement contains the use of all threads.

    A copy, including a pickled one, has the numbers and has ended. Copying an ended measurement
    waits for its final numbers. The copy of a running measurement has the numbers so far, with a
    note in `lost`.

    >>> import gpumon, time
    >>> with gpumon.measure("sleep") as m:
    ...     time.sleep(0.01)
    >>> m.duration_s >= 0.01
    True
    """

    # These defaults are attributes of the class, so that `__del__` also works on an object whose
    # unpickling failed.
    _helper: Helper | None = None
    _run: Run | None = None
    _final: tuple[Cost, StoredCost | None] | None = None

    def __init__(self, name: str | None = None, pid: int | None = None) -> None:
        #: The name that was passed to `measure`.
        self.name: str | None = (
            None if name is None else check_text(name, "the name of a measurement")
        )
        #: The root of the measured process tree; None for this process.
        self.pid: int | None = None if pid is None else check_whole_number(pid, "pid", 1, MAX_PID)

    def start(self) -> Measurement:
        """Start, and return this measurement.

        Raises:
            MeasurementError: the measurement is already running.
        """
        if self._run is not None and self._run.ended_ms is None:
            raise MeasurementError(
                f"{self._label()} is already running: call gpumon.measure() again for a nested "
                f"measurement"
            )
        self._forget()
        self._final = None
        self._helper = current_helper()
        self._run = self._helper.begin_run(self.name, self.pid)
        return self

    def stop(self) -> None:
        """End the measurement, without waiting for the numbers. A second call does nothing.

        Raises:
            MeasurementError: the measurement has not been started.
        """
        run = self._require_started_run()
        if run.ended_ms is None and self._helper is not None:
            self._helper.end_run(run)

    def __enter__(self) -> Measurement:
        return self.start()

    def __exit__(self, *_error: object) -> None:
        self.stop()

    async def __aenter__(self) -> Measurement:
        return self.start()

    async def __aexit__(self, *_error: object) -> None:
        self.stop()

    def __call__(self, function: Callable[_P, _R]) -> Measured[Callable[_P, _R], _P, _R]:
        """Measure each call of a function; see `measure`."""
        from gpumon._measure import wrap_with_measurements

        if not callable(function):
            raise TypeError(
                f"{function!r} cannot be decorated: write @gpumon.measure('name') above a function"
            )
        return wrap_with_measurements(function, self.name, self.pid)

    def __del__(self) -> None:
        self._forget()

    def __getstate__(self) -> dict[str, Any]:
        """Return the state for copying and pickling: the numbers, without the connection to the
        program.
        """
        state = {**self.__dict__, "_helper": None}
        run = self._run
        if run is not None:
            ended_ms = run.ended_ms
            cost, stored = self._cost()
            if ended_ms is None:
                ended_ms = run.begun_ms + cost["duration_s"] * 1000
                clock = time.strftime("%H:%M:%S")
                lost = (
                    f"the usage after {clock}, when this copy was made: the measurement was still "
                    f"running"
                )
                cost = {**cost, "lost": [*cost["lost"], lost]}
            state["_run"] = run.copy_with_end(ended_ms)
            state["_final"] = cost, stored
        return state

    @property
    def duration_s(self) -> float:
        """Seconds from the start to the end, or to now."""
        return self._require_started_run().duration_s

    @property
    def started(self) -> datetime.datetime:
        """The start of the measurement, in the local time zone."""
        return datetime.datetime.fromtimestamp(
            self._require_started_run().begun_ms / 1000
        ).astimezone()

    @property
    def gpu_s(self) -> float | None:
        """Seconds during which kernels ran, summed over GPUs, from the driver's samples."""
        return self.to_dict()["gpu_s"]

    @property
    def peak_memory_bytes(self) -> int | None:
        """Peak GPU memory in bytes, summed over all GPUs, as reported by the driver."""
        return self.to_dict()["peak_memory_bytes"]

    @property
    def memory_change_bytes(self) -> int | None:
        """GPU memory in bytes at the end, minus that at the start; negative if memory was freed."""
        return self.to_dict()["memory_change_bytes"]

    @property
    def energy_joules(self) -> float | None:
        """Energy in joules of the GPUs that were used; an estimate if other processes used them,
        too.
        """
        energy = self._energy()
        return None if energy is None else energy.estimate

    @property
    def energy_joules_range(self) -> tuple[float, float] | None:
        """The lowest and highest possible energy in joules; equal if no other process used the
        GPUs.
        """
        energy = self._energy()
        return None if energy is None else (energy.least, energy.most)

    @property
    def shared(self) -> bool:
        """Whether other processes used one of the GPUs during the measurement."""
        return self.to_dict()["shared"]

    @property
    def limits(self) -> LimitSummary | None:
        """The causes that limited the GPUs, as the mean over all GPUs that were used; None if the
        measurement was shorter than a second.
        """
        from gpumon._cost import parse_limits

        return parse_limits(self.to_dict()["limits"])

    @property
    def gpus(self) -> list[GpuCost]:
        """The cost on each GPU that was used, sorted by index; empty if no GPU was used."""
        from gpumon._cost import parse_gpu_cost

        return [parse_gpu_cost(one) for one in self.to_dict()["gpus"]]

    @property
    def lost(self) -> list[str]:
        """Sentences that name each unknown number and the reason."""
        return self.to_dict()["lost"]

    def to_dict(self) -> Cost:
        """Return all numbers as a dictionary, in the JSON format of ``gpumon run --json``."""
        return self._cost()[0]

    def stored(self) -> StoredCost | None:
        """Return the cost that a notebook stores with a cell; None if no GPU was used."""
        return self._cost()[1]

    def to_pandas(self) -> pandas.DataFrame:
        """Return a `pandas.DataFrame` with a row for each GPU that was used.

        Raises:
            ImportError: pandas is not installed.
        """
        from gpumon._libraries import make_pandas_frame
        from gpumon._results import COST_COLUMNS, cost_rows

        return make_pandas_frame(cost_rows(self.to_dict()), COST_COLUMNS)

    def to_polars(self) -> polars.DataFrame:
        """Return a `polars.DataFrame` with a row for each GPU that was used.

        Raises:
            ImportError: polars is not installed.
        """
        from gpumon._libraries import make_polars_frame
        from gpumon._results import COST_COLUMNS, cost_rows

        return make_polars_frame(cost_rows(self.to_dict()), COST_COLUMNS)

    def plot(self) -> matplotlib.figure.Figure:
        """Return a figure with GPU time, peak memory and energy of each GPU.

        Raises:
            ImportError: matplotlib is not installed.
        """
        from gpumon._libraries import plot_cost

        return plot_cost(self.to_dict())

    def __str__(self) -> str:
        from gpumon._results import cost_line

        return escape_unencodable(cost_line(self.to_dict()))

    def __repr__(self) -> str:
        if self._run is None:
            return escape_unencodable(f"<{self._label()}, not started>")
        state = "so far " if self._run.ended_ms is None else ""
        return escape_unencodable(f"<{self._label()}: {state}{self}>")

    def _repr_html_(self) -> str:
        from gpumon._results import cost_html

        return cost_html(self.to_dict())

    def _label(self) -> str:
        return "Measurement" if self.name is None else f"Measurement {self.name!r}"

    def _require_started_run(self) -> Run:
        if self._run is None:
            raise MeasurementError(
                f"{self._label()} has not started: use it in a `with` statement, or call start()"
            )
        return self._run

    def _energy(self) -> Energy | None:
        from gpumon._cost import parse_energy

        return parse_energy(self.to_dict()["energy_joules"])

    def _cost(self) -> tuple[Cost, StoredCost | None]:
        run = self._require_started_run()
        if self._final is not None:
            return self._final
        is_final = run.ended_ms is not None
        answer = None if self._helper is None else self._helper.request_cost(run)
        found = _add_times_to_cost(run, answer)
        if is_final:
            self._final = found
            self._forget()
        return found

    def _forget(self) -> None:
        if self._run is not None and self._helper is not None:
            self._helper.forget_run(self._run)


def _add_times_to_cost(run: Run, answer: dict[str, Any] | None) -> tuple[Cost, StoredCost | None]:
    """Return the cost and the cost to store: the program's numbers, with the start, end and
    duration of the whole measurement.
    """
    cost: dict[str, Any] = {} if answer is None else answer["cost"]
    times = {
        "started_ms": round(run.begun_ms),
        "ended_ms": round(run.begun_ms + run.duration_s * 1000),
        "duration_s": run.duration_s,
    }
    unknown: dict[str, Any] = {
        "version": 1,
        "name": run.name,
        **times,
        "gpu_s": None,
        "peak_memory_bytes": None,
        "memory_change_bytes": None,
        "energy_joules": None,
        "shared": False,
        "limits": None,
        "gpus": [],
        "xids": [],
        "marks": [],
    }
    # A program that was restarted during the measurement only knows the start and end of its last
    # part.
    whole = {
        **unknown,
        **cost,
        **(times if run.is_partial else {}),
        "lost": [*run.lost, *cost.get("lost", [])],
    }
    stored: dict[str, Any] | None = None if answer is None else answer.get("stored")
    if stored is not None:
        if run.is_partial:
            stored["duration_s"] = float(f"{run.duration_s:.3g}")
        # Whole numbers are stored as integers. gpumon's front end in the browser does the same, so
        # both write identical notebooks.
        stored = {
            key: int(one) if isinstance(one, float) and one.is_integer() else one
            for key, one in stored.items()
        }
    return cast("Cost", whole), cast("StoredCost | None", stored)
