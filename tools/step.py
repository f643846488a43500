#!/usr/bin/env python3
"""Runs one step of a build: says what is done and how long it took, and shows its output only where it fails.

    tools/step.py LABEL COMMAND...

The whole output is kept in target/log/.
"""

from __future__ import annotations

import re
import subprocess
import sys
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
    log: Path
    #: Its output, without escape sequences.
    text: str

    def report(self, summary: str = "") -> str:
        """One line about it, and where it failed the end of its output."""
        words = "  ".join(filter(None, [summary, "FAILED" if self.code else ""]))
        line = f"{self.label.ljust(LABEL_WIDTH)}{self.seconds:6.1f} s  {words}".rstrip()
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
    """Run a command and report on it, with a summary of its output; a terminal meanwhile sees its newest line.

    Return its exit code and its output, without escape sequences.
    """
    is_terminal = sys.stdout.isatty()
    begun = label.ljust(LABEL_WIDTH)
    print(begun, end="", flush=True)

    def progress(seconds: float, log: Path) -> None:
        if is_terminal:
            print(f"{RESTART}{begun}{seconds:6.0f} s  {_newest(log)}", end="", flush=True)

    done = run_logged(label, command, env=env, each_second=progress)
    report = done.report(summary(done.text))
    print(RESTART + report if is_terminal else report.removeprefix(begun), flush=True)
    return done.code, done.text


def run_logged(
    label: str,
    command: list[str],
    *,
    env: dict[str, str] | None = None,
    each_second: Callable[[float, Path], None] = lambda _seconds, _log: None,
) -> Done:
    """Run a command into its log; `each_second` is called meanwhile, and may raise an error, which ends the command."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / (re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") + ".log")
    started = time.monotonic()
    with log.open("w", encoding="utf-8") as output:
        try:
            process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        except OSError as error:
            output.write(f"cannot start {command[0]}: {error.strerror}\n")
            code = 127
        else:
            code = _watch(process, lambda: each_second(time.monotonic() - started, log))
    text = ESCAPE.sub("", log.read_text(encoding="utf-8", errors="replace"))
    return Done(label, code, time.monotonic() - started, log, text)


def _watch(process: subprocess.Popen[bytes], each_second: Callable[[], None]) -> int:
    try:
        while True:
            try:
                return process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                each_second()
    except BaseException:
        process.terminate()
        process.wait()
        raise


def _newest(log: Path) -> str:
    with log.open("rb") as output:
        output.seek(max(0, log.stat().st_size - 500))
        lines = [line.strip() for line in output.read().decode(errors="replace").splitlines() if line.strip()]
    return ESCAPE.sub("", lines[-1])[:30] if lines else ""


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: tools/step.py LABEL COMMAND...")
    try:
        sys.exit(run_step(sys.argv[1], sys.argv[2:])[0])
    except KeyboardInterrupt:
        sys.exit(130)
