#!/usr/bin/env python3
"""Runs the checks and tests, all of them or those that are named, and adds up what they say.

    tools/test.py [rust] [web] [python] [browser] [lab40]

One that fails does not keep the others from running. A check without a count of its own, as clippy, counts as one.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from step import ROOT, run_step


def cargo_counts(text: str) -> tuple[int, int]:
    """One closing line for each test program."""
    found = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed", text, re.MULTILINE)
    return sum(int(passed) for passed, _ in found), sum(int(failed) for _, failed in found)


def vitest_counts(text: str) -> tuple[int, int]:
    """One closing line for each package, as `Tests  1 failed | 17 passed (18)`."""
    lines = "\n".join(re.findall(r"^ +Tests +\d.*$", text, re.MULTILINE))
    passed, failed = (sum(map(int, re.findall(rf"(\d+) {word}", lines))) for word in ("passed", "failed"))
    return passed, failed


def unittest_counts(text: str) -> tuple[int, int]:
    """`Ran 10 tests`, and `FAILED (failures=1, errors=1)` where not all is well."""
    failed = sum(map(int, re.findall(r"(?:failures|errors)=(\d+)", text)))
    skipped = sum(map(int, re.findall(r"skipped=(\d+)", text)))
    return sum(map(int, re.findall(r"^Ran (\d+) test", text, re.MULTILINE))) - failed - skipped, failed


@dataclass
class Suite:
    """One command; `counts` finds in its output how many passed and how many failed."""

    label: str
    command: list[str]
    counts: Callable[[str], tuple[int, int]] | None = None
    env: dict[str, str] = field(default_factory=dict)

    def run(self) -> tuple[int, int]:
        """Return how many passed and how many failed."""
        code, text = run_step(self.label, self.command, env={**os.environ, **self.env}, summary=self._summary)
        passed, failed = self.counts(text) if self.counts else (int(code == 0), int(code != 0))
        if code == 0 and passed == 0:
            print(f"{self.label}: its output counts no tests, so nothing was tested")
            return 0, 1
        # A runner that fails outside of its tests, as by a compile error, counts as one failure.
        return passed, max(failed, int(code != 0))

    def _summary(self, text: str) -> str:
        if self.counts is None:
            return ""
        passed, failed = self.counts(text)
        return f"{passed} passed" + (f", {failed} failed" if failed else "")


def _browser(*files: str) -> list[str]:
    return ["npm", "run", "browser", "--workspace", "tests/browser", "--", *files]


SUITES = {
    "rust": [
        Suite("Rust format", ["cargo", "fmt", "--all", "--check"]),
        Suite("Clippy", "cargo clippy --workspace --all-targets --locked -- -D warnings".split()),
        Suite("Rust tests", "cargo test --workspace --locked --no-fail-fast".split(), cargo_counts),
    ],
    "web": [
        Suite("TypeScript types and style", ["npm", "run", "check"]),
        Suite("TypeScript tests", ["npm", "test"], vitest_counts),
    ],
    "python": [
        Suite(
            "Python tests",
            "target/jupyter/bin/python -m unittest discover --start-directory tests/python".split(),
            unittest_counts,
        ),
    ],
    "browser": [Suite("Chromium: JupyterLab, Notebook, page", _browser(), vitest_counts)],
    "lab40": [
        Suite(
            "Chromium: JupyterLab 4.0",
            _browser("panel.test.ts"),
            vitest_counts,
            {"GPUMON_TEST_JUPYTER": str(ROOT / "target" / "jupyter-lab40")},
        )
    ],
}


def main(names: list[str]) -> int:
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        sys.exit(f"there is no suite {unknown[0]}; there are {', '.join(SUITES)}")
    started = time.monotonic()
    results = [suite.run() for name in names or SUITES for suite in SUITES[name]]
    passed, failed = (sum(numbers) for numbers in zip(*results))
    print(f"the output of each is in target/log; all took {time.monotonic() - started:.0f} s")
    print(f"{passed} passed, {failed} failed")
    return 0 if failed == 0 else 1


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
