"""What `gpumon licenses` prints names every library in the program, and only licenses that the project allows."""

import re
import subprocess
import unittest
from pathlib import Path

import gpumon

ROOT = Path(__file__).resolve().parents[2]


def output_of(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True).stdout


class Licenses(unittest.TestCase):
    def test_every_library_in_the_program_is_named(self) -> None:
        printed = output_of(gpumon.find_gpumon_bin(), "licenses")
        tree = ("cargo", "tree", "--locked", "--package=gpumon", "--edges=normal,no-proc-macro", "--prefix=none")
        for target in ("x86_64", "aarch64"):
            there = output_of(*tree, f"--target={target}-unknown-linux-gnu", "--format={p}")
            libraries = set(re.findall(r"^(\S+) v(\S+)(?: \(\*\))?$", there, re.MULTILINE))
            self.assertGreater(len(libraries), 100)
            missing = {f"{name} {version}" for name, version in libraries if f"  {name} {version}" not in printed}
            self.assertEqual(missing, set(), "run `make licenses`")

    def test_what_is_collected_is_what_is_allowed(self) -> None:
        allowed = re.search(r"\nallow = \[(.+?)\]", (ROOT / "deny.toml").read_text(encoding="utf-8"), re.DOTALL)[1]
        accepted = re.search(r"\naccepted = \[(.+?)\]", (ROOT / "tools/licenses/about.toml").read_text(encoding="utf-8"))[1]
        self.assertEqual(set(re.findall(r'"(.+?)"', accepted)), set(re.findall(r'"(.+?)"', allowed)))


if __name__ == "__main__":
    unittest.main()
