#!/usr/bin/env python3
"""Checks changed files: format, types, lints, and the unit tests next to the changes.

    tools/check.py [BASE]

Changed files are those that differ from the commit BASE or are untracked. BASE is the last commit
by default; if nothing differs from it, the files of the last commit are checked.

- Rust: format and lints of all programs and libraries, and the unit tests of each changed crate.
- TypeScript: types and style of all packages, format of the changed files, and the unit tests that
  import them.
- Python: syntax, and each changed test of tests/python.
- Comments, names and documents in changed lines: plain English.

`make test` checks everything.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from step import ROOT, run_step
from test import clippy_failures

#: Folders of TypeScript with unit tests, and those without.
TESTED, UNTESTED = ["static", "labextension"], ["tests/browser"]


def main(base: str = "HEAD") -> int:
    os.environ.setdefault("RUSTC_WORKSPACE_WRAPPER", "clippy-driver")
    changed = changed_files(base) or changed_files("HEAD~1")
    checks = [
        check_rust,
        check_typescript,
        run_typescript_tests,
        check_python,
        lambda _changed: check_english(base),
    ]
    with ThreadPoolExecutor(len(checks)) as pool:
        results = [
            step for steps in pool.map(lambda check: check(changed), checks) for step in steps
        ]
    if not changed:
        print("no changed files to check")
    return 0 if all(results) else 1


def changed_files(base: str) -> list[str]:
    """Return the files that differ from a commit or are new, without deleted files."""
    differing = _git_lines("diff", "--name-only", "--diff-filter=d", base)
    return sorted({*differing, *_git_lines("ls-files", "--others", "--exclude-standard")})


def check_rust(changed: list[str]) -> list[bool]:
    """Return whether each step passed. Lints are warnings, so that Cargo continues."""
    if not any(name.endswith((".rs", ".toml", ".snap")) for name in changed):
        return []
    lints = _run_and_report_step(
        "Rust lints", ["cargo", "check", "--workspace", "--locked"], has_no_warnings=True
    )
    tests = [
        _run_and_report_step(
            f"Rust tests of {crate}",
            ["cargo", "test", "--locked", "--package", crate, "--lib"],
            has_no_warnings=True,
        )
        for crate in sorted(set(filter(None, map(find_crate, changed))))
    ]
    return [
        _run_and_report_step("Rust format", ["cargo", "fmt", "--all", "--check"]),
        lints,
        *tests,
    ]


def find_crate(path: str) -> str | None:
    """Return the name of the package to which a source file belongs, or nothing for a file outside
    of `src`.
    """
    for folder in Path(path).parents:
        manifest = ROOT / folder.parent / "Cargo.toml"
        if folder.name == "src" and manifest.exists():
            return tomllib.loads(manifest.read_text(encoding="utf-8"))["package"]["name"]
    return None


def check_typescript(changed: list[str]) -> list[bool]:
    sources = typescript_sources(changed)
    if not sources:
        return []
    return [
        _run_and_report_step("TypeScript format", ["npx", "prettier", "--check", *sources]),
        _run_and_report_step("TypeScript types and style", ["npx", "oxlint"]),
    ]


def run_typescript_tests(changed: list[str]) -> list[bool]:
    results = []
    for package in TESTED:
        sources = typescript_sources(changed)
        if own := [str(ROOT / name) for name in sources if name.startswith(f"{package}/")]:
            related = [
                "npx",
                "vitest",
                "related",
                "--run",
                "--passWithNoTests",
                "--root",
                package,
                *own,
            ]
            results.append(_run_and_report_step(f"TypeScript tests of {package}", related))
    return results


def typescript_sources(changed: list[str]) -> list[str]:
    folders = (*TESTED, *UNTESTED)
    kinds = (".ts", ".tsx", ".css")
    return [name for name in changed if name.endswith(kinds) and name.startswith(folders)]


def check_python(changed: list[str]) -> list[bool]:
    sources = [name for name in changed if name.endswith(".py")]
    if not sources:
        return []
    results = [
        _run_and_report_step("Python syntax", [sys.executable, "-m", "py_compile", *sources])
    ]
    tests = [name for name in sources if name.startswith("tests/python/test_")]
    interpreter = ROOT / "target" / "jupyter" / "bin" / "python"
    if tests and interpreter.exists():
        results.append(
            _run_and_report_step("Python tests", [str(interpreter), "-m", "unittest", *tests])
        )
    return results


def check_english(base: str) -> list[bool]:
    return [
        _run_and_report_step("Plain English", [sys.executable, "tools/prose.py", "--base", base])
    ]


def _run_and_report_step(label: str, command: list[str], *, has_no_warnings: bool = False) -> bool:
    code, text = run_step(label, command)
    warnings = clippy_failures(text) if has_no_warnings and code == 0 else []
    print("".join(warnings), end="", flush=True)
    return code == 0 and not warnings


def _git_lines(*arguments: str) -> list[str]:
    return subprocess.run(
        ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
