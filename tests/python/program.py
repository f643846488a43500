"""The program of this environment, and the fake NVML library that it can be run over."""

import json
import os
import subprocess
from pathlib import Path

import gpumon

LIBRARY = Path(__file__).resolve().parents[2] / "target/debug/libfake_nvml.so"


def over_fake(folder: str | Path, scenario: str) -> dict[str, str]:
    """Variables with which gpumon reads this scenario, which is kept in the folder, and no other server."""
    file = Path(folder, "scenario.toml")
    file.write_text(scenario)
    return {
        "GPUMON_NVML_LIB": str(LIBRARY),
        "GPUMON_FAKE_NVML_SCENARIO": str(file),
        "GPUMON_CONTROL": str(Path(folder, "control.sock")),
    }


def output_of(*arguments: str, **env: str) -> str:
    """What gpumon prints with these arguments and variables; it has to end well."""
    command = [gpumon.find_gpumon_bin(), *arguments]
    return subprocess.run(command, env=os.environ | env, capture_output=True, text=True, check=True).stdout


def snapshot(**env: str) -> dict:
    """What `gpumon --json` prints with these variables."""
    return json.loads(output_of("--json", **env))
