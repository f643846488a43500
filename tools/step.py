#!/usr/bin/env python3
"""Runs one step of a build: prints its label and duration, and its output only if it fails.

    tools/step.py LABEL COMMAND...

The complete output is stored in target/log/.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "target" / "log"
#: The number of lines that are shown of a failed step.
TAIL_LINES = 80
LABEL_WIDTH = 50
#: The sequences that move a terminal's cursor or color its text.
ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\([A-Z])")
#: The sequence that returns to the start of the terminal's line and clears the line.
RESTART = "\r\x1b[K"


@dataclass(frozen=True)
class StepResult:
    """The result of a step."""

    label: str
    code: int
    seconds: float
    #: The processor time of the command, including all of its children that have ended.
    cpu_seconds: float
    log: Path
    #: The output, without escape sequences.
    text: str

    def report(self, summary: str = "") -> str:
        """Return a summary line and, if the step failed, the end of its output."""
        words = "  ".join(filter(None, [summary, "FAILED" if self.code else ""]))
        line = (
            f"{self.label.ljust(LABEL_WIDTH)}{self.seconds:6.1f} s  {self.cpu_seconds:6.1f} s CPU "
            f" {words}"
        ).rstrip()
        if self.code == 0:
            return line
        where = (
            f"{self.label}: failed with code {self.code}; the full output is in "
            f"{self.log.relative_to(ROOT)}"
        )
        return "\n".join([line, *self.text.splitlines()[-TAIL_LINES:], where])


def run_step(
    label: str,
    command: list[str],
    *,
    env: dict[str, str] | None = None,
    summary: Callable[[str], str] = lambda _text: "",
) -> tuple[int, str]:
    """Run a command. When it has ended, print a report with a summary of its output.

    Other steps may run at the same time. Return the command's exit code, and its output without
    escape sequences.
    """
    if sys.stdout.isatty():
        print(f"{label} ...", flush=True)
    done = run_logged(label, command, env=env)
    print(done.report(summary(done.text)), flush=True)
    return done.code, done.text


def run_logged(
    label: str,
    command: list[str],
    *,
    env: dict[str, str] | None = None,
    each_second: Callable[[], None] = lambda: None,
) -> StepResult:
    """Run a command, and write its output to a log file. `each_second` is called meanwhile; if it
    raises an error, the command is ended.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / (re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") + ".log")
    started = time.monotonic()
    cpu_seconds = 0.0
    with log.open("w", encoding="utf-8") as output:
        try:
            process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )
        except OSError as error:
            output.write(f"cannot start {command[0]}: {error.strerror}\n")
            code = 127
        else:
            code, cpu_seconds = _wait_for_process(process, each_second)
    text = ESCAPE.sub("", log.read_text(encoding="utf-8", errors="replace"))
    return StepResult(label, code, time.monotonic() - started, cpu_seconds, log, text)


def _wait_for_process(
    process: subprocess.Popen[bytes], each_second: Callable[[], None]
) -> tuple[int, float]:
    """Wait for a process. Return its exit code and its processor time."""
    ended = threading.Event()
    result: list[tuple[int, float]] = []

    def wait() -> None:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        result.append((process.returncode, usage.ru_utime + usage.ru_stime))
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    try:
        while not ended.wait(timeout=1):
            each_second()
    except BaseException:
        os.kill(process.pid, signal.SIGTERM)
        ended.wait()
        raise
    return result[0]


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: tools/step.py LABEL COMMAND...")
    try:
        sys.exit(run_step(sys.argv[1], sys.argv[2:])[0])
    except KeyboardInterrupt:
        sys.exit(130)
