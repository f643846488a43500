"""What the build backend of the wheel refuses, as an installer meets it."""

import subprocess
import sys
import unittest
from pathlib import Path

BACKEND = Path(__file__).resolve().parents[2] / "python" / "build_backend"
#: Asks a hook as an installer does, of a backend whose maturin only says that it was asked.
ASK = """
import os, sys
from unittest import mock
def unknown(name):
    raise OSError(22, "Invalid argument")
if sys.argv[1] == "musl":
    os.confstr = unknown
sys.modules["maturin"] = mock.Mock(**{f"{sys.argv[2]}.return_value": ["asked"]})
import gpumon_build
print(getattr(gpumon_build, sys.argv[2])())
"""


def ask(libc: str, hook: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-c", ASK, libc, hook]
    return subprocess.run(command, env={"PYTHONPATH": str(BACKEND)}, capture_output=True, text=True, check=False)


class Refusal(unittest.TestCase):
    def test_without_glibc_it_refuses_and_says_why_and_what_to_do(self) -> None:
        for hook in ("get_requires_for_build_wheel", "get_requires_for_build_editable", "build_wheel", "build_editable"):
            with self.subTest(hook):
                done = ask("musl", hook)
                self.assertEqual((done.returncode, done.stdout), (1, ""))
                self.assertRegex(done.stderr, "^gpumon: this system has no glibc, .* NVIDIA's driver libraries .*Debian")

    def test_with_glibc_maturin_is_asked(self) -> None:
        for hook in ("get_requires_for_build_wheel", "get_requires_for_build_editable", "get_requires_for_build_sdist"):
            with self.subTest(hook):
                self.assertEqual(ask("glibc", hook).stdout, "['asked']\n")
