"""The checks of tools/prose.py: what is found, and what is not."""

import sys
import unittest
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2] / "tools"))
import prose  # noqa: E402


def check_lines(name: str, *lines: str) -> list[str]:
    return [finding.message for finding in prose.check_file(name, "\n".join(lines))]


class Findings(unittest.TestCase):
    def assert_found(self, expected: str, name: str, *lines: str) -> None:
        found = check_lines(name, *lines)
        self.assertEqual(len(found), 1, found)
        self.assertIn(expected, found[0])

    def test_sentence_fragments_in_comments_are_reported(self) -> None:
        self.assert_found("“What”", "a.rs", "/// What a client may see.", "struct View;")
        self.assert_found("“Where”", "a.ts", "  // Where it cannot be read.")
        self.assert_found("“It”", "a.py", '"""It is read once."""')
        self.assert_found("“Of”", "a.py", "x = 1  # Of each GPU.")
        self.assert_found("“As”", "a.md", "# Install", "", "As a package.")
        self.assert_found(
            "“Whether”", "a.rs", "/// Whether it runs.", "pub fn is_running() -> bool {"
        )

    def test_whole_sentences_are_accepted(self) -> None:
        self.assertEqual(check_lines("a.rs", "/// Whether it runs.", "is_running: bool,"), [])
        self.assertEqual(check_lines("a.rs", "// What if the file is gone?"), [])
        self.assertEqual(
            check_lines("a.md", "# Install", "", "Run this.", "", "It takes minutes."), []
        )
        self.assertEqual(check_lines("a.rs", "/// ```", "/// What", "/// ```"), [])

    def test_unidiomatic_words_are_reported(self) -> None:
        self.assert_found("report, return", "a.rs", "/// The time that the driver tells.")
        self.assert_found("reported", "a.rs", "struct ToldFile;")
        self.assertEqual(check_lines("a.rs", "/// The command `tell`, and what is told apart."), [])

    def test_unclear_function_names_are_found(self) -> None:
        self.assert_found("fn over", "a.rs", "pub(super) fn over(limit: u64) -> Self {")
        self.assert_found("fn shown", "a.rs", "    fn shown(&self) -> bool {")
        self.assert_found("fn beyond", "a.ts", "function beyond(): string {")
        for clear in ("fn parse(text: &str) {", "fn watts(&self) -> f64 {", "fn is_over() {"):
            self.assertEqual(check_lines("a.rs", clear), [])

    def test_long_test_names_are_found(self) -> None:
        long = "a_client_that_goes_away_does_not_block_others"
        self.assert_found("9 words", "a.rs", "#[test]", f"fn {long}() {{")
        self.assert_found("9 words", "a.py", f"    def test_{long}(self) -> None:")
        self.assert_found("9 words", "a.test.ts", f"it('{long.replace('_', ' ')}', () => {{")
        self.assertEqual(check_lines("a.rs", "#[test]", "fn over() {"), [])

    def test_long_lines_are_found(self) -> None:
        self.assert_found("101 characters", "a.rs", "// " + "x" * 98)
        self.assert_found("101 characters", "a.py", "x" * 101)
        self.assertEqual(check_lines("a.md", "x" * 101), [])

    def test_wrong_commit_subjects_are_found(self) -> None:
        for wrong in ("Added a check", "The check is new", "fix the check", "Add " + "x" * 70):
            self.assertEqual(len(list(prose.check_subject(wrong))), 1, wrong)
        self.assertEqual(list(prose.check_subject("Need no password for a local client")), [])


if __name__ == "__main__":
    unittest.main()
