"""Runs commands that have to end well."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def run(*command: str | Path, env: dict[str, str] | None = None) -> str:
    """What a command prints; one that fails ends this program, with all that it has said."""
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(
            f"{done.stdout}{done.stderr}\n`{' '.join(map(str, command))}` failed with code {done.returncode}"
        )
    return done.stdout.strip()
