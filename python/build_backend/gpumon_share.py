"""Writes what shells and man(1) read of gpumon, as the program itself prints it, to where the wheel
installs it from.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
#: Becomes ``share`` of the environment that the wheel is installed into.
SHARE = ROOT / "wheel" / "data" / "share"
#: Where each shell looks for completions.
COMPLETIONS = {
    "bash": SHARE / "bash-completion" / "completions" / "gpumon",
    "zsh": SHARE / "zsh" / "site-functions" / "_gpumon",
    "fish": SHARE / "fish" / "vendor_completions.d" / "gpumon.fish",
}
PAGES = SHARE / "man" / "man1"
#: The profile that the program is built with; `make` and the tests choose one that is built
#: quickly.
PROFILE = os.environ.get("GPUMON_PROFILE", "release")


def build() -> None:
    """Build the program, which maturin then finds built, and let it write; this program ends where
    that fails.
    """
    program = _program()
    for shell, path in COMPLETIONS.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_run(program, "completions", shell))
    # Pages of commands that there were once.
    for page in PAGES.glob("*.1"):
        page.unlink()
    _run(program, "man", "--out", str(PAGES))


def _program() -> str:
    command = [
        "cargo",
        "build",
        "--profile",
        PROFILE,
        "--locked",
        "--package",
        "gpumon",
        "--bin",
        "gpumon",
    ]
    # For this machine, which has to run it, also where the wheel is for another.
    env = {name: value for name, value in os.environ.items() if name != "CARGO_BUILD_TARGET"}
    output = _run(*command, "--message-format", "json-render-diagnostics", env=env)
    artifacts = [
        artifact for artifact in map(json.loads, output.splitlines()) if artifact.get("executable")
    ]
    return artifacts[-1]["executable"]


def _run(*command: str, env: dict[str, str] | None = None) -> bytes:
    print(f"gpumon: {' '.join(command)}", file=sys.stderr, flush=True)
    try:
        finished = subprocess.run(command, cwd=ROOT, env=env, stdout=subprocess.PIPE, check=False)
    except FileNotFoundError:
        sys.exit(f"gpumon: {command[0]} is missing: install Rust from https://rustup.rs")
    if finished.returncode != 0:
        sys.exit(
            f"gpumon: `{' '.join(command)}` failed with code {finished.returncode}; its own messages are above"
        )
    return finished.stdout


if __name__ == "__main__":
    build()
