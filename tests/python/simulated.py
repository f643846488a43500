"""Simulated GPUs with known readings, for `gpumon measure` and for servers."""

import contextlib
import os
import subprocess
import tempfile
import time
import unittest
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import gpumon
import gpumon._errors as errors
import gpumon._helper as helper

#: The maximum time to wait on a busy machine, in seconds.
PATIENCE_S = 60


def make_constant_process(
    pid: int, gpu: int = 0, memory: str = "4 GiB", sm_percent: int = 50
) -> str:
    """Return the scenario text of a process whose activity is constant."""
    return (
        f'[[process]]\ngpu = {gpu}\npid = {pid}\nmemory = "{memory}"\nsm_percent = {sm_percent}\n'
    )


#: A scenario with two GPUs. GPU 0 draws 300 W.
GPUS = "gpus = 2\n[[gpu]]\nindex = 0\npower_watts = 300\n"


class SimulatedGpuTest(unittest.TestCase):
    """A test with its own program and control socket."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.variables = {
            "GPUMON_SOURCE": f"sim:{self.folder}/scenario.toml",
            "GPUMON_CONTROL": str(self.folder / "control.sock"),
            "GPUMON_CONFIG": "none",
        }
        for patch in (
            mock.patch.dict(os.environ, self.variables),
            mock.patch.object(helper, "_current", helper.Helper()),
            mock.patch.object(errors, "_said", False),
        ):
            patch.start()
            self.addCleanup(patch.stop)
        self.addCleanup(helper._current.close)

    def set_scenario(self, text: str) -> None:
        """Set the scenario of programs that start from now on."""
        (self.folder / "scenario.toml").write_text(text)

    def warm_up(self) -> None:
        """Wait until the program has read the GPUs."""
        gpumon.snapshot()

    @contextlib.contextmanager
    def start_server(self) -> Iterator[subprocess.Popen]:
        """Start a server of this user."""
        command = [
            gpumon.find_gpumon_bin(),
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--interval-ms",
            "200",
        ]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as served:
            try:
                until = time.monotonic() + PATIENCE_S
                while not (self.folder / "control.sock").exists() and time.monotonic() < until:
                    time.sleep(0.05)
                yield served
            finally:
                served.kill()
