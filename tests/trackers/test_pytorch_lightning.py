"""Lightning under its older name. The test runs in its own process, because a program can only use
one of the two names.
"""

import subprocess
import sys
import unittest
from pathlib import Path

PROGRAM = """
import unittest
import pytorch_lightning as pl
from pytorch_lightning import loggers
from test_trackers import Frameworks

class Older(Frameworks):
    def runTest(self):
        self.lightning(pl, loggers)

assert unittest.TextTestRunner().run(Older()).wasSuccessful()
"""


class OlderName(unittest.TestCase):
    def test_lightning_is_supported_under_older_package_name(self) -> None:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=Path(__file__).parent,
            capture_output=True,
            text=True,
        )
        self.assertEqual(done.returncode, 0, done.stderr)


if __name__ == "__main__":
    unittest.main()
