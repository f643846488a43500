"""One measurement as the helper knows it, also over a restart of the program."""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gpumon._process import Process


class Run:
    """From when to when, and which program measures it."""

    def __init__(self, number: int, name: str | None, pid: int | None) -> None:
        self.number = number
        self.name = name
        #: The root of the measured process tree.
        self.pid = os.getpid() if pid is None else pid
        self.begun_ms = time.time() * 1000
        self.ended_ms: float | None = None
        #: Nobody where nothing measures it.
        self.process: Process | None = None
        #: Why less is known than was used.
        self.lost: list[str] = []
        #: Whether the program knows only the last part of it.
        self.is_partial = False

    @property
    def duration_s(self) -> float:
        """Seconds from its beginning to its end, or to now."""
        return max(0.0, (self.ended_ms or time.time() * 1000) - self.begun_ms) / 1000

    def copy_ended(self, ended_ms: float) -> Run:
        """Return a copy that ended at this time and that no program measures."""
        run = Run(self.number, self.name, self.pid)
        run.begun_ms, run.ended_ms = self.begun_ms, ended_ms
        return run

    def begin_line(self, at_ms: float) -> bytes:
        name = "" if self.name is None else f',"name":{json.dumps(self.name)}'
        return f'{{"begin":{self.number},"at_ms":{at_ms:.3f}{name},"pid":{self.pid}}}\n'.encode()

    def end_line(self) -> bytes:
        return f'{{"end":{self.number},"at_ms":{self.ended_ms:.3f}}}\n'.encode()
