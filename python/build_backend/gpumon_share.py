"""Writes the completions and manual pages into the folder from which the wheel installs them. The
program itself prints their contents.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys

from gpumon_frontend import ROOT, run_or_exit

#: The folder whose contents pip installs into ``share`` of the Python environment.
SHARE = ROOT / "wheel" / "data" / "share"
#: The path of each shell's completion file.
COMPLETIONS = {
    "bash": SHARE / "bash-completion" / "completions" / "gpumon",
    "zsh": SHARE / "zsh" / "site-functions" / "_gpumon",
    "fish": SHARE / "fish" / "vendor_completions.d" / "gpumon.fish",
}
PAGES = SHARE / "man" / "man1"
#: The Cargo profile of the program. `make` and the tests choose one that builds quickly.
PROFILE = os.environ.get("GPUMON_PROFILE", "release")


def build() -> None:
    """Build the program and let it write the files. maturin reuses this build. The program exits if
    a step fails.
    """
    program = _build_program()
    for shell, path in COMPLETIONS.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(_run(program, "completions", shell))
    # Pages of removed commands are deleted.
    for page in PAGES.glob("*.1"):
        page.unlink()
    _run(program, "man", "--out", str(PAGES))


def _build_program() -> str:
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
    # This machine must run the program, so the program is built for this machine, even if the wheel
    # is for another target.
    env = {name: value for name, value in os.environ.items() if name != "CARGO_BUILD_TARGET"}
    output = _run(*command, "--message-format", "json-render-diagnostics", env=env)
    artifacts = [
        artifact for artifact in map(json.loads, output.splitlines()) if artifact.get("executable")
    ]
    return artifacts[-1]["executable"]


def _run(*command: str, env: dict[str, str] | None = None) -> bytes:
    try:
        return run_or_exit(*command, env=env, stdout=subprocess.PIPE)
    except FileNotFoundError:
        sys.exit(f"gpumon: {command[0]} is missing: install Rust from https://rustup.rs")


if __name__ == "__main__":
    build()
