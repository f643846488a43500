"""Running of commands that must succeed."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def read_output(*command: str | Path, env: dict[str, str] | None = None) -> str:
    """Return the output of a command. If the command fails, exit with all of its output."""
    done = subprocess.run(command, cwd=ROOT, env=env, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(
            f"{done.stdout}{done.stderr}\n`{' '.join(map(str, command))}` failed with code "
            f"{done.returncode}"
        )
    return done.stdout.strip()
