"""One measurement from the helper's point of view. It continues when the program is restarted."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpumon._process import Process


class Run:
    """The time range of a measurement, and the program that measures it."""

    def __init__(self, number: int, name: str | None, pid: int | None) -> None:
        self.number = number
        self.name = name
        #: The root of the measured process tree.
        self.pid = os.getpid() if pid is None else pid
        self.begun_ms = time.time() * 1000
        self.ended_ms: float | None = None
        #: The program, or None if nothing measures the run.
        self.process: Process | None = None
        #: The reasons why a part of the use is unknown.
        self.lost: list[str] = []
        #: Whether the program knows only the last part of the run.
        self.is_partial = False

    @property
    def duration_s(self) -> float:
        """Seconds from the start to the end, or to now."""
        return max(0.0, (self.ended_ms or time.time() * 1000) - self.begun_ms) / 1000

    def copy_ended(self, ended_ms: float) -> Run:
        """Return a copy that ended at this time and has no program."""
        run = Run(self.number, self.name, self.pid)
        run.begun_ms, run.ended_ms = self.begun_ms, ended_ms
        return run

    def format_begin(self, at_ms: float) -> bytes:
        name = "" if self.name is None else f',"name":{json.dumps(self.name)}'
        return f'{{"begin":{self.number},"at_ms":{at_ms:.3f}{name},"pid":{self.pid}}}\n'.encode()

    def format_end(self) -> bytes:
        return f'{{"end":{self.number},"at_ms":{self.ended_ms:.3f}}}\n'.encode()
