"""Text in the package's output: invisible characters are escaped, and processes that cannot be seen
are noted.
"""

import json
import unittest
from pathlib import Path

from gpumon._results import snapshot_notes
from gpumon._snapshot import Snapshot
from gpumon._text import escape_controls

CASES = json.loads((Path(__file__).resolve().parents[1] / "invisible-characters.json").read_text())


class Escaped(unittest.TestCase):
    def test_invisible_characters_are_escaped(self) -> None:
        for digits in CASES["invisible"]:
            self.assertTrue(escape_controls(chr(int(digits, 16))).startswith("\\"), digits)

    def test_visible_characters_are_kept(self) -> None:
        for digits in CASES["visible"]:
            letter = chr(int(digits, 16))
            self.assertEqual(escape_controls(letter), letter, digits)


class Notes(unittest.TestCase):
    def test_invisible_processes_are_noted(self) -> None:
        gpu = {"index": 0, "processes": [], "conditions": []}
        notes = [
            snapshot_notes(Snapshot({}, {"gpus": [one]}))
            for one in (gpu, {**gpu, "unlisted_memory_bytes": 1181116006})
        ]
        said = "GPU 0: processes of other namespaces are not visible: 1.10 GiB in use"
        self.assertEqual(notes, [[], [said]])


if __name__ == "__main__":
    unittest.main()
