"""Code of one vendor's driver stays in that vendor's folder."""

import re
import subprocess
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: A path that contains a vendor's module. A `use` that imports several modules of `vendor` may
#: extend over several lines.
NAMES_MODULE = re.compile(r"\bvendor::(?:\{[^;]*?)?\b(?:nvml|amd|intel|drm)\b(?:::|,|\})")

#: Folders that may name a vendor's module: the vendors themselves, and `gpumon smi`, which mimics
#: NVIDIA's tool.
OF_VENDORS = ("probe/src/vendor/", "probe/examples/", "smi/")


def uses_vendor_module(text: str) -> bool:
    """Return whether a Rust file uses a vendor's module, apart from its unit tests."""
    return bool(NAMES_MODULE.search(text.split("#[cfg(test)]")[0]))


class Vendors(unittest.TestCase):
    def test_only_vendor_code_uses_vendor_modules(self):
        files = subprocess.check_output(["git", "ls-files", "*.rs"], cwd=ROOT, text=True).split()
        product = [
            name
            for name in files
            if not name.startswith(OF_VENDORS) and not re.search(r"(^|/|_)tests?(/|\.rs|_)", name)
        ]
        self.assertGreater(len(product), 500)
        naming = [name for name in product if uses_vendor_module((ROOT / name).read_text())]
        self.assertEqual(naming, [])

    def test_vendor_import_over_several_lines_is_found(self):
        self.assertTrue(uses_vendor_module("use gpumon_probe::vendor::nvml::xid;"))
        self.assertTrue(
            uses_vendor_module(
                "use probe::{\n  vendor::{\n    ERRORS,\n    nvml::query::Code,\n  },\n};"
            )
        )
        self.assertFalse(uses_vendor_module("use vendor::{Source, SourceError};\nlet nvml = 1;"))


if __name__ == "__main__":
    unittest.main()
