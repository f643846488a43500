#!/usr/bin/env python3
"""Fuzzes what gpumon reads that strangers have written: each target of tests/fuzz/ for some time,
one after another.

    tools/fuzz.py [--seconds 600] [TARGET...]

What was found interesting is kept in tests/fuzz/corpus/, so that the next run begins where this one
ended. An input that crashes a target is kept in tests/fuzz/artifacts/, and the command that runs it
again is at the end of the log.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
import tomllib

from step import ROOT, run_step

FUZZ = ROOT / "tests" / "fuzz"
#: More memory, or more time for one input, is a defect, too.
LIMITS = ["-rss_limit_mb=512", "-timeout=10"]
#: Inputs no longer than this: longer ones are only slower.
LONGEST = "-max_len=65536"
#: The instrumentation is an unstable option of the compiler, which the stable one takes when it is
#: told so.
ENVIRONMENT = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
CARGO_FUZZ = ["cargo", "fuzz"]
#: All that is fuzzed is safe Rust, so that a sanitizer of memory would find nothing and halve the
#: speed.
OPTIONS = ["--fuzz-dir", "tests/fuzz", "--sanitizer", "none"]


def main() -> None:
    targets = [target["name"] for target in tomllib.loads((FUZZ / "Cargo.toml").read_text())["bin"]]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=int, default=600, help="how long each target runs")
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help=f"{', '.join(targets)}; all of them by default"
    )
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.targets) - set(targets))
    if unknown:
        sys.exit(f"no such target: {', '.join(unknown)}; there are {', '.join(targets)}")
    if shutil.which("cargo-fuzz") is None:
        sys.exit("fuzzing needs cargo-fuzz: cargo install cargo-fuzz")
    code, _ = run_step("fuzz targets", [*CARGO_FUZZ, "build", *OPTIONS], env=ENVIRONMENT)
    if code:
        sys.exit(code)
    crashed = [
        target for target in arguments.targets or targets if not fuzz(target, arguments.seconds)
    ]
    if crashed:
        sys.exit(f"{len(crashed)} of the targets crashed: {', '.join(crashed)}")


def fuzz(target: str, seconds: int) -> bool:
    """Whether it ran so long without a crash."""
    corpus = FUZZ / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    folders = [str(folder.relative_to(ROOT)) for folder in (corpus, FUZZ / "seeds" / target)]
    limits = [*LIMITS, LONGEST, f"-max_total_time={seconds}", "-print_final_stats=1"]
    command = [*CARGO_FUZZ, "run", *OPTIONS, target, *folders, "--", *limits]
    code, _ = run_step(f"fuzz {target}", command, env=ENVIRONMENT, summary=figures)
    return code == 0


def figures(text: str) -> str:
    """How many inputs were tried, and how much of the code they reached."""
    runs = re.findall(r"^stat::number_of_executed_units: (\d+)", text, re.MULTILINE)
    reached = re.findall(r"cov: (\d+)", text)
    parts = [f"{int(runs[-1]):,} inputs"] if runs else []
    return ", ".join([*parts, *([f"{int(reached[-1]):,} edges"] if reached else [])])


if __name__ == "__main__":
    main()
