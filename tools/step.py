#!/usr/bin/env python3
"""Runs one step of a build: says what is done and how long it took, and shows its output only where
it fails.

    tools/step.py LABEL COMMAND...

The whole output is kept in target/log/.
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
#: What is shown of a step that failed.
TAIL_LINES = 80
LABEL_WIDTH = 50
#: What moves a terminal's cursor or colors its text.
ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\([A-Z])")
#: Begins the line of a terminal anew.
RESTART = "\r\x1b[K"


@dataclass(frozen=True)
class Done:
    """A step that has ended."""

    label: str
    code: int
    seconds: float
    #: The processor time of the command and of all that it started and waited for.
    cpu_seconds: float
    log: Path
    #: Its output, without escape sequences.
    text: str

    def report(self, summary: str = "") -> str:
        """One line about it, and where it failed the end of its output."""
        words = "  ".join(filter(None, [summary, "FAILED" if self.code else ""]))
        line = f"{self.label.ljust(LABEL_WIDTH)}{self.seconds:6.1f} s  {self.cpu_seconds:6.1f} s CPU  {words}".rstrip()
        if self.code == 0:
            return line
        where = f"{self.label}: failed with code {self.code}; all of its output is in {self.log.relative_to(ROOT)}"
        return "\n".join([line, *self.text.splitlines()[-TAIL_LINES:], where])


def run_step(
    label: str,
    command: list[str],
    *,
    env: dict[str, str] | None = None,
    summary: Callable[[str], str] = lambda _text: "",
) -> tuple[int, str]:
    """Run a command and report on it when it has ended, with a summary of its output.

    Other steps may run meanwhile. Return its exit code and its output, without escape sequences.
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
    each_second: Callable[[float, Path], None] = lambda _seconds, _log: None,
) -> Done:
    """Run a command into its log; `each_second` is called meanwhile, and may raise an error, which
    ends the command.
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
            code, cpu_seconds = _watch(
                process, lambda: each_second(time.monotonic() - started, log)
            )
    text = ESCAPE.sub("", log.read_text(encoding="utf-8", errors="replace"))
    return Done(label, code, time.monotonic() - started, cpu_seconds, log, text)


def _watch(process: subprocess.Popen[bytes], each_second: Callable[[], None]) -> tuple[int, float]:
    """Return the exit code of a process and its processor time, once it has ended."""
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
