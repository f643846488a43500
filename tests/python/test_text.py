"""Texts that other users choose, as people read them."""

import json
import unittest
from pathlib import Path

from gpumon._text import escaped

CASES = json.loads((Path(__file__).resolve().parents[1] / "invisible-characters.json").read_text())


class Escaped(unittest.TestCase):
    def test_invisible_characters_are_escaped(self) -> None:
        for digits in CASES["invisible"]:
            self.assertTrue(escaped(chr(int(digits, 16))).startswith("\\"), digits)

    def test_visible_characters_are_kept(self) -> None:
        for digits in CASES["visible"]:
            letter = chr(int(digits, 16))
            self.assertEqual(escaped(letter), letter, digits)


if __name__ == "__main__":
    unittest.main()
