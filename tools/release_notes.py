#!/usr/bin/env python3
"""Prints the section of CHANGELOG.md about a version, as the notes of its release.

    tools/release_notes.py [VERSION]

VERSION must be the version in Cargo.toml, and may be left out. A tag that does not match the code
is refused.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


class VersionMismatch(Exception):
    """The reason why a version cannot be released."""


def extract_notes(changelog: str, version: str) -> str:
    """Return the section of this version, without its heading."""
    section = re.search(
        rf"^## {re.escape(version)} \(.+?\)\n(.*?)(?=^## |\Z)", changelog, re.MULTILINE | re.DOTALL
    )
    if section is None:
        raise VersionMismatch(
            f"CHANGELOG.md has no section of {version}: add `## {version} (YEAR-MONTH)`"
        )
    if not section[1].strip():
        raise VersionMismatch(
            f"the section of {version} in CHANGELOG.md is empty: describe what changes for users"
        )
    return section[1].strip() + "\n"


def read_version(root: Path) -> str:
    """Return the version of Cargo.toml, which the packages of npm must also have."""
    found = re.search(
        r'^version = "(.+?)"$', (root / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE
    )
    if found is None:
        raise VersionMismatch("Cargo.toml has no version: add `version` to [workspace.package]")
    for folder in ("static", "labextension", "tests/browser"):
        package = json.loads((root / folder / "package.json").read_text(encoding="utf-8"))
        if package["version"] != found[1]:
            raise VersionMismatch(
                f"{folder}/package.json has version {package['version']}, Cargo.toml has "
                f"{found[1]}: set the same version in both"
            )
    return found[1]


def main(wanted: str | None) -> str:
    version = read_version(ROOT)
    if wanted not in (None, version):
        raise VersionMismatch(
            f"the code has version {version}, not {wanted}: set the version in Cargo.toml, or "
            f"rename the tag to v{version}"
        )
    return extract_notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)


if __name__ == "__main__":
    if len(sys.argv) > 2:
        sys.exit("usage: tools/release_notes.py [VERSION]")
    try:
        sys.stdout.write(main(*sys.argv[1:] or [None]))
    except VersionMismatch as error:
        sys.exit(str(error))
