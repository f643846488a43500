"""The examples in the documentation of the package."""

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import unittest
from pathlib import Path

import gpumon
from simulated import GPUS, SimulatedGpuTest

GUIDES = Path(__file__).resolve().parents[2] / "docs/guides"
#: Modules that run a program, or need libraries that are not installed.
OF_OTHERS = re.compile(r"\.(__main__|_papermill|trackers\.[a-z]+)$")
#: Lines with magics or with `await` outside of functions, which only work in notebooks.
OF_NOTEBOOKS = re.compile(r"^\s*%|^await ", re.MULTILINE)


class Doctests(SimulatedGpuTest):
    def setUp(self) -> None:
        super().setUp()
        self.set_scenario(GPUS)

    def test_examples_of_package_pass(self) -> None:
        attempted = 0
        for module in pkgutil.walk_packages(gpumon.__path__, "gpumon."):
            if not OF_OTHERS.search(module.name):
                done = doctest.testmod(
                    importlib.import_module(module.name), extraglobs={"gpumon": gpumon}
                )
                self.assertEqual(done.failed, 0, module.name)
                attempted += done.attempted
        attempted += doctest.testmod(gpumon).attempted
        self.assertGreater(attempted, 15)

    def test_examples_of_guide_run(self) -> None:
        """Run all examples of the guide in one program, with a server."""
        blocks = re.findall(
            r"^```python\n(.*?)^```$", (GUIDES / "python.md").read_text(), re.MULTILINE | re.DOTALL
        )
        self.assertGreater(len(blocks), 5)
        names: "dict[str, object]" = {}
        with self.start_server():
            for block in blocks:
                self.assertNotRegex(block, OF_NOTEBOOKS)
                with self.subTest(block), contextlib.redirect_stdout(io.StringIO()):
                    exec(compile(block, "python.md", "exec"), names)


if __name__ == "__main__":
    unittest.main()
