"""The program of this environment, and the fake NVML library for it."""

import contextlib
import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import gpumon

LIBRARY = Path(__file__).resolve().parents[2] / "target/debug/libfake_nvml.so"
#: The maximum time to wait in seconds. A server has its first sums after ten seconds, and even
#: later on a busy machine.
PATIENCE_S = 90


def fake_nvml_variables(folder: str | Path, scenario: str) -> dict[str, str]:
    """Store the scenario in the folder. Return environment variables that make gpumon read it and
    use no other server.
    """
    file = Path(folder, "scenario.toml")
    file.write_text(scenario)
    return {
        "GPUMON_NVML_LIB": str(LIBRARY),
        "GPUMON_FAKE_NVML_SCENARIO": str(file),
        "GPUMON_CONTROL": str(Path(folder, "control.sock")),
    }


def run_gpumon(*arguments: str, **env: str) -> str:
    """Return the output of gpumon with these arguments and variables. The command must succeed."""
    command = [gpumon.find_gpumon_bin(), *arguments]
    return subprocess.run(
        command, env=os.environ | env, capture_output=True, text=True, check=True
    ).stdout


def read_snapshot(**env: str) -> dict:
    """Return the output of `gpumon --json` with these variables."""
    return json.loads(run_gpumon("--json", **env))


@contextlib.contextmanager
def start_server(folder: str | Path, *arguments: str, **env: str) -> Iterator[str]:
    """Start a server, and wait for its first sample. Yield the path of its control socket."""
    control = str(Path(folder, "control.sock"))
    command = [
        gpumon.find_gpumon_bin(),
        *arguments,
        "serve",
        "--control",
        control,
        "--listen",
        "127.0.0.1:0",
    ]
    with subprocess.Popen(command, env=os.environ | env, stderr=subprocess.DEVNULL) as running:
        try:
            wait_until(lambda: _is_ready(control))
            yield control
        finally:
            running.terminate()


def _is_ready(control: str) -> bool:
    command = [gpumon.find_gpumon_bin(), "--json", "--control", control]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def wait_until(is_so: Callable[[], bool]) -> None:
    """Wait until the condition is met."""
    end = time.monotonic() + PATIENCE_S
    while not is_so():
        if time.monotonic() > end:
            raise TimeoutError(f"the condition was not met within {PATIENCE_S} s")
        time.sleep(0.2)
