"""`gpumon licenses` names every library in the program, and only allowed licenses."""

import re
import sys
import unittest
from pathlib import Path

from program import run_gpumon

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools"))
from sbom import linked_crates  # noqa: E402


class Licenses(unittest.TestCase):
    def test_licenses_name_every_linked_crate(self) -> None:
        printed = run_gpumon("licenses")
        for architecture in ("x86_64", "aarch64"):
            libraries = {
                f"{crate.name} {crate.version}"
                for crate in linked_crates(architecture)
                if not crate.is_own
            }
            self.assertGreater(len(libraries), 100)
            self.assertEqual(
                {name for name in libraries if f"  {name}" not in printed},
                set(),
                "run `make licenses`",
            )

    def test_collected_licenses_match_allowed_ones(self) -> None:
        allowed = re.search(
            r"\nallow = \[(.+?)\]", (ROOT / "deny.toml").read_text(encoding="utf-8"), re.DOTALL
        )[1]
        accepted = re.search(
            r"\naccepted = \[(.+?)\]",
            (ROOT / "tools/licenses/about.toml").read_text(encoding="utf-8"),
        )[1]
        self.assertEqual(
            set(re.findall(r'"(.+?)"', accepted)), set(re.findall(r'"(.+?)"', allowed))
        )


if __name__ == "__main__":
    unittest.main()
