"""Tests with a stand-in for `gpumon measure`. Each test has its own process."""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path
from unittest import mock

import gpumon._errors as errors
import gpumon._helper as helper

HERE = Path(__file__).parent
PROGRAM = str(HERE / "stand_in_program.py")
#: The maximum time to wait on a busy machine, in seconds.
PATIENCE_S = 30
#: The first lines of the tests' programs, which make them use the stand-in.
PRELUDE = f"import gpumon, gpumon._helper as helper\nhelper.find_gpumon_bin = lambda: {PROGRAM!r}\n"


class StandInTest(unittest.TestCase):
    """A test with a new stand-in. Its faults are set by `set_faults`, and it ends with the test."""

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.says, self.heard_in = Path(folder.name, "says"), Path(folder.name, "heard")
        self.says.touch()
        self.heard_in.touch()
        self.variables = {"STANDIN_SAYS": str(self.says), "STANDIN_HEARD": str(self.heard_in)}
        environment = mock.patch.dict(os.environ, self.variables)
        environment.start()
        self.addCleanup(environment.stop)
        for what, by in (("find_gpumon_bin", lambda: PROGRAM), ("_current", helper.Helper())):
            patch = mock.patch.object(helper, what, by)
            patch.start()
            self.addCleanup(patch.stop)
        said = mock.patch.object(errors, "_said", False)
        said.start()
        self.addCleanup(said.stop)
        self.addCleanup(helper._current.close)

    def set_faults(self, *faults: str) -> None:
        """Set the faults of stand-ins that start from now on."""
        self.says.write_text("\n".join(faults))

    def wait_for_lines(self, lines: int = 0) -> "list[dict]":
        """Wait for this many lines. Return all lines that stand-ins have received."""
        until = time.monotonic() + PATIENCE_S
        while self.heard_in.read_text().count("\n") < lines and time.monotonic() < until:
            time.sleep(0.01)
        return [json.loads(line) for line in self.heard_in.read_text().splitlines()]

    def run_code(self, code: str, *options: str) -> "subprocess.CompletedProcess[str]":
        """Run code with the stand-in, in Python's development mode with warnings as errors."""
        command = [sys.executable, "-X", "dev", "-W", "error", *options, "-c", PRELUDE + code]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, env=os.environ)

    def run_script(self, code: str) -> str:
        """Run code from a file, so that child processes can import it. Return its output."""
        file = self.says.with_name("program.py")
        file.write_text(PRELUDE + code)
        done = subprocess.run(
            [sys.executable, file], capture_output=True, text=True, timeout=60, env=os.environ
        )
        self.assertEqual(done.stderr, "")
        return done.stdout
