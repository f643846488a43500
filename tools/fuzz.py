#!/usr/bin/env python3
"""Fuzzes the parsers of untrusted input: all targets of tests/fuzz/, one after another.

    tools/fuzz.py [--seconds 600] [TARGET...]

Interesting inputs are stored in tests/fuzz/corpus/, so the next run continues from there. An input
that crashes a target is stored in tests/fuzz/artifacts/, and the log ends with the command that
reproduces the crash.
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
#: The limits of memory and of time per input. An input that exceeds them has found a defect.
LIMITS = ["-rss_limit_mb=512", "-timeout=10"]
#: The maximum length of inputs. Longer ones only take more time.
MAX_INPUT = "-max_len=65536"
#: The instrumentation needs an unstable option of the compiler. This variable makes the stable
#: compiler accept it.
ENVIRONMENT = {**os.environ, "RUSTC_BOOTSTRAP": "1"}
CARGO_FUZZ = ["cargo", "fuzz"]
#: All fuzzed code is safe Rust, so a memory sanitizer would find nothing and halve the speed.
OPTIONS = ["--fuzz-dir", "tests/fuzz", "--sanitizer", "none"]


def main() -> None:
    targets = [target["name"] for target in tomllib.loads((FUZZ / "Cargo.toml").read_text())["bin"]]
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--seconds", type=int, default=600, help="run time of each target in seconds"
    )
    parser.add_argument(
        "targets",
        nargs="*",
        metavar="TARGET",
        help=f"targets to run, by default all: {', '.join(targets)}",
    )
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.targets) - set(targets))
    if unknown:
        sys.exit(f"no such target: {', '.join(unknown)}; the targets are {', '.join(targets)}")
    if shutil.which("cargo-fuzz") is None:
        sys.exit("cargo-fuzz is missing: run `cargo install cargo-fuzz`")
    code, _ = run_step("fuzz targets", [*CARGO_FUZZ, "build", *OPTIONS], env=ENVIRONMENT)
    if code:
        sys.exit(code)
    crashed = [
        target
        for target in arguments.targets or targets
        if not run_target(target, arguments.seconds)
    ]
    if crashed:
        sys.exit(f"{len(crashed)} targets crashed: {', '.join(crashed)}")


def run_target(target: str, seconds: int) -> bool:
    """Return whether the target ran for this time without a crash."""
    corpus = FUZZ / "corpus" / target
    corpus.mkdir(parents=True, exist_ok=True)
    folders = [str(folder.relative_to(ROOT)) for folder in (corpus, FUZZ / "seeds" / target)]
    limits = [*LIMITS, MAX_INPUT, f"-max_total_time={seconds}", "-print_final_stats=1"]
    command = [*CARGO_FUZZ, "run", *OPTIONS, target, *folders, "--", *limits]
    code, _ = run_step(f"fuzz {target}", command, env=ENVIRONMENT, summary=format_figures)
    return code == 0


def format_figures(text: str) -> str:
    """Return the number of inputs and the covered code as text."""
    runs = re.findall(r"^stat::number_of_executed_units: (\d+)", text, re.MULTILINE)
    reached = re.findall(r"cov: (\d+)", text)
    parts = [f"{int(runs[-1]):,} inputs"] if runs else []
    return ", ".join([*parts, *([f"{int(reached[-1]):,} edges"] if reached else [])])


if __name__ == "__main__":
    main()
