"""The examples in the guide for other languages print the server's values."""

import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from markdown_it import MarkdownIt
from program import start_server

GUIDE = Path(__file__).resolve().parents[2] / "docs/guides/other-languages.md"
#: The command that runs an example, the code that fails if a required package is missing, and the
#: way to install the packages.
LANGUAGES = {
    "r": (
        ["Rscript", "-e"],
        "library(curl); library(jsonlite)",
        "install Debian's r-base-core, r-cran-curl and r-cran-jsonlite",
    ),
    "julia": (
        ["julia", "-e"],
        "using JSON",
        "install Julia, which Debian 12 lacks, and its package JSON",
    ),
}
LINE = re.compile(r"GPU (\d+): \d+ %, \d+\.\d GiB, (\d+) W, mean (\d+) W")


def read_example(language: str) -> str:
    """Return the only code block of this language in the guide."""
    tokens = MarkdownIt().parse(GUIDE.read_text(encoding="utf-8"))
    (code,) = [
        token.content for token in tokens if token.type == "fence" and token.info == language
    ]
    return code


def can_run(language: str) -> bool:
    (program, *option), packages, _ = LANGUAGES[language]
    return (
        bool(shutil.which(program))
        and subprocess.run(
            [program, *option, packages], capture_output=True, check=False
        ).returncode
        == 0
    )


class Examples(unittest.TestCase):
    def _check_output(self, language: str) -> None:
        if not can_run(language):
            self.skipTest(LANGUAGES[language][2])
        with (
            tempfile.TemporaryDirectory() as folder,
            start_server(folder, "--source", "sim:2") as control,
        ):
            program, option = LANGUAGES[language][0]
            variables = os.environ | {"GPUMON_CONTROL": control}
            command = [program, option, read_example(language)]
            done = subprocess.run(
                command, env=variables, capture_output=True, text=True, check=False
            )
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [LINE.fullmatch(line) for line in done.stdout.splitlines()]
        self.assertEqual([line and line[1] for line in lines], ["0", "1"], done.stdout)
        for line in lines:
            self.assertTrue(50 < float(line[2]) < 800 and 50 < float(line[3]) < 800, line[0])

    def test_r_example_runs(self) -> None:
        self._check_output("r")

    def test_julia_example_runs(self) -> None:
        self._check_output("julia")


if __name__ == "__main__":
    unittest.main()
