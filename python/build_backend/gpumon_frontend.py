"""Builds the page and the JupyterLab extension with npm if they are missing or older than their
sources.

The build backend calls this before it builds a wheel. It can also be run as a program.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXTENSION = ROOT / "wheel" / "data" / "share" / "jupyter" / "labextensions" / "gpumon"
#: The files that the builds of the page and the extension write last.
OUTPUTS = [
    ROOT / "static" / "dist" / "index.html",
    EXTENSION / "package.json",
    EXTENSION / "install.json",
]
PACKAGES = ["static", "labextension"]
MANIFESTS = [
    "package.json",
    "package-lock.json",
    ".npmrc",
    *(f"{package}/package.json" for package in PACKAGES),
]
#: Folders that are not searched for changed sources. Builds either write these folders or do not
#: depend on them.
SKIPPED = {"node_modules", "dist"}
#: The minimum version of Node.js for the build tools.
NODE_AT_LEAST = (20, 19)


def build_if_needed() -> None:
    """Bring the outputs up to date, and print each step. The program exits if a step fails."""
    # A source distribution contains the outputs, so it can be installed without Node.js.
    is_source_distribution = (ROOT / "PKG-INFO").exists() and all(path.exists() for path in OUTPUTS)
    if is_source_distribution or _are_outputs_current(OUTPUTS, _source_files()):
        return
    _require_node()
    if not _are_outputs_current(
        [ROOT / "node_modules" / ".package-lock.json"], [ROOT / name for name in MANIFESTS]
    ):
        run_or_exit("npm", "ci")
    run_or_exit("npm", "run", "build")


def _are_outputs_current(outputs: list[Path], sources: list[Path]) -> bool:
    if not all(path.exists() for path in outputs):
        return False
    newest_source = max(path.stat().st_mtime_ns for path in sources if path.exists())
    return min(path.stat().st_mtime_ns for path in outputs) >= newest_source


def _source_files() -> list[Path]:
    # JupyterLab shows the name of the Python package, which is in pyproject.toml. So a new name
    # needs a new build.
    files = [ROOT / name for name in [*MANIFESTS, "pyproject.toml"]]
    for package in PACKAGES:
        files.extend(_walk(ROOT / package))
    return files


def _walk(folder: Path) -> Iterator[Path]:
    for path in folder.iterdir():
        if path.is_dir():
            if path.name not in SKIPPED:
                yield from _walk(path)
        elif ".test." not in path.name:
            yield path


def _require_node() -> None:
    needed = ".".join(map(str, NODE_AT_LEAST))
    if shutil.which("npm") is None or shutil.which("node") is None:
        sys.exit(
            f"gpumon: npm is missing, which builds the page and the panel: install Node.js "
            f"{needed} or newer"
        )
    printed = subprocess.run(
        ["node", "--version"], capture_output=True, text=True, check=True
    ).stdout.strip()
    version = tuple(map(int, re.findall(r"\d+", printed)[:2]))
    if version < NODE_AT_LEAST:
        sys.exit(
            f"gpumon: Node.js {printed} is too old to build the page and the panel: install "
            f"{needed} or newer"
        )


def run_or_exit(
    *command: str, env: dict[str, str] | None = None, stdout: int | None = None
) -> bytes:
    """Print a command, run it in the root folder, and return its output if `stdout` is a pipe. The
    program exits if the command fails.
    """
    print(f"gpumon: {' '.join(command)}", file=sys.stderr, flush=True)
    finished = subprocess.run(command, cwd=ROOT, env=env, stdout=stdout, check=False)
    if finished.returncode != 0:
        sys.exit(
            f"gpumon: `{' '.join(command)}` failed with code {finished.returncode}; its output is "
            f"above"
        )
    return finished.stdout


if __name__ == "__main__":
    build_if_needed()
