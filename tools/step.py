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
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOGS = ROOT / "target" / "log"
#: What is shown of a step that failed.
TAIL_LINES = 80
LABEL_WIDTH = 50
#: What moves a terminal's cursor or colours its text.
ESCAPE = re.compile(r"\x1b(?:\[[0-9;?]*[A-Za-z]|\([A-Z])")


def run_step(
    label: str,
    command: list[str],
    *,
    env: dict[str, str] | None = None,
    summary: Callable[[str], str] = lambda _text: "",
) -> tuple[int, str]:
    """Run a command and report on it in one line, which ends in a summary of its output.

    Return its exit code and its output, without escape sequences.
    """
    LOGS.mkdir(parents=True, exist_ok=True)
    log = LOGS / (re.sub(r"[^a-z0-9]+", "-", label.lower()).strip("-") + ".log")
    started = time.monotonic()
    _begin(label)
    with log.open("w", encoding="utf-8") as output:
        try:
            process = subprocess.Popen(
                command, cwd=ROOT, env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        except OSError as error:
            output.write(f"cannot start {command[0]}: {error.strerror}\n")
            code = 127
        else:
            code = _watch(process, label, log, started)
    text = ESCAPE.sub("", log.read_text(encoding="utf-8", errors="replace"))
    _end(label, time.monotonic() - started, "  ".join(filter(None, [summary(text), "" if code == 0 else "FAILED"])))
    if code != 0:
        print("\n".join(text.splitlines()[-TAIL_LINES:]))
        print(f"{label}: failed with code {code}; all of its output is in {log.relative_to(ROOT)}", flush=True)
    return code, text


def _watch(process: subprocess.Popen[bytes], label: str, log: Path, started: float) -> int:
    """Wait for the end; a terminal meanwhile sees the seconds and the newest line."""
    try:
        while True:
            try:
                return process.wait(timeout=1)
            except subprocess.TimeoutExpired:
                if sys.stdout.isatty():
                    _progress(label, time.monotonic() - started, log)
    except BaseException:
        process.terminate()
        process.wait()
        raise


def _begin(label: str) -> None:
    print(label.ljust(LABEL_WIDTH), end="", flush=True)


def _progress(label: str, seconds: float, log: Path) -> None:
    with log.open("rb") as output:
        output.seek(max(0, log.stat().st_size - 500))
        lines = [line.strip() for line in output.read().decode(errors="replace").splitlines() if line.strip()]
    newest = ESCAPE.sub("", lines[-1])[:30] if lines else ""
    print(f"\r\x1b[K{label.ljust(LABEL_WIDTH)}{seconds:6.0f} s  {newest}", end="", flush=True)


def _end(label: str, seconds: float, summary: str) -> None:
    restart = f"\r\x1b[K{label.ljust(LABEL_WIDTH)}" if sys.stdout.isatty() else ""
    print(f"{restart}{seconds:6.1f} s  {summary}".rstrip(), flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit("usage: tools/step.py LABEL COMMAND...")
    try:
        sys.exit(run_step(sys.argv[1], sys.argv[2:])[0])
    except KeyboardInterrupt:
        sys.exit(130)
