"""A simulated machine for measured programs: the fake library, and processes on its GPUs."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

from measure import Program, wait_until_reachable

ROOT = Path(__file__).resolve().parents[2]
GPUMON = ROOT / "target/release/gpumon"
LIBRARY = ROOT / "target/release/libfake_nvml.so"
PORT = 19123


class Machine:
    """A scenario with real processes, and the environment in which a program reads it."""

    def __init__(self, gpus=8, processes=4, extra="", jobs=False):
        """Starts the processes. With `jobs`, each belongs to a Slurm job of its own."""
        self.folder = tempfile.TemporaryDirectory()
        job = lambda at: {**os.environ, "SLURM_JOB_ID": str(1000 + at)} if jobs else None
        self.sleepers = [
            subprocess.Popen(["sleep", "100000"], env=job(at)) for at in range(gpus * processes)
        ]
        scenario = [f"gpus = {gpus}", extra]
        for at, sleeper in enumerate(self.sleepers):
            scenario.append(
                f'[[process]]\ngpu = {at % gpus}\npid = {sleeper.pid}\nmemory = "4 '
                f'GiB"\nsm_percent = 20'
            )
        self.path = Path(self.folder.name)
        (self.path / "scenario.toml").write_text("\n".join(scenario))
        # The library gets its usual file name, because other monitors look for this name.
        shutil.copy(LIBRARY, self.path / "libnvidia-ml.so.1")
        self.counts = self.path / "counts.json"
        self.environment = {
            "GPUMON_NVML_LIB": str(LIBRARY),
            "GPUMON_FAKE_NVML_SCENARIO": str(self.path / "scenario.toml"),
            "LD_LIBRARY_PATH": str(self.path),
        }

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for sleeper in self.sleepers:
            sleeper.kill()
            sleeper.wait()
        self.folder.cleanup()

    def serve(self, *arguments, before=()):
        """Starts a server. `before` are words in front of the command, such as `prlimit`."""
        command = [
            *before,
            GPUMON,
            "serve",
            "--no-control",
            "--listen",
            f"127.0.0.1:{PORT}",
            *arguments,
        ]
        program = Program(command, self.environment)
        wait_until_reachable(PORT, "/readyz")
        return program
