#!/usr/bin/env python3
"""Builds what is released of gpumon into dist/: source distribution, wheels, archives and Debian packages.

    tools/dist.py [ARCHITECTURE...]

Each architecture (x86_64, aarch64; by default both) is compiled here by Zig, for every Linux with glibc 2.17 or newer.
Nothing depends on when or in which folder it is built: two builds of a commit are the same byte for byte.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import package_deb

ROOT = Path(__file__).resolve().parents[1]
DIST = ROOT / "dist"
#: Where the packages of `dist-requirements.txt` are.
TOOLS = ROOT / "target" / "dist-tools" / "bin"
#: Nothing that other builds have left there is released.
TARGET = ROOT / "target" / "dist"
ARCHITECTURES = ["x86_64", "aarch64"]
#: The oldest C library that the program runs with.
GLIBC = "2.17"
#: What of the wheel the archive has, and where.
SHARED = ["bash-completion", "zsh", "fish", "man"]


def main(architectures: list[str]) -> None:
    shutil.rmtree(DIST, ignore_errors=True)
    environment = reproducible()
    run("maturin", "sdist", "--out", DIST, env=environment)
    # Manual pages and completions are the same for all, and quickly told by a program for this machine.
    told = {**os.environ, "SOURCE_DATE_EPOCH": environment["SOURCE_DATE_EPOCH"], "GPUMON_PROFILE": "dev"}
    run(sys.executable, ROOT / "python" / "build_backend" / "gpumon_share.py", env=told)
    for architecture in architectures:
        seconds = int(environment["SOURCE_DATE_EPOCH"])
        package_deb.package(pack_archive(build_wheel(architecture, environment), architecture, seconds), seconds)
    check()
    sums = [f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" for path in sorted(DIST.iterdir())]
    (DIST / "SHA256SUMS").write_text("\n".join(sums) + "\n", encoding="utf-8")
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.relative_to(ROOT)}")


def reproducible() -> dict[str, str]:
    """An environment in which time and place of a build leave no trace in it."""
    committed = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False)
    if committed.returncode != 0:
        sys.exit(f"gpumon is released from a clone with its commits: {committed.stderr.strip()}")
    cargo = os.environ.get("CARGO_HOME", str(Path.home() / ".cargo"))
    return {
        "SOURCE_DATE_EPOCH": committed.stdout.strip(),
        **os.environ,
        "PATH": f"{TOOLS}:{os.environ['PATH']}",
        "CARGO_TARGET_DIR": str(TARGET),
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join([f"--remap-path-prefix={cargo}=/cargo", f"--remap-path-prefix={ROOT}=/gpumon"]),
    }


def build_wheel(architecture: str, environment: dict[str, str]) -> Path:
    target = f"{architecture}-unknown-linux-gnu"
    TARGET.mkdir(parents=True, exist_ok=True)
    parts = TARGET / "gpumon.cdx.json"
    run(TOOLS / "python", ROOT / "tools" / "sbom.py", target, parts, env=environment)
    run(
        *("maturin", "build", "--profile", "release", "--zig", "--out", DIST, "--sbom-include", parts),
        *("--target", target, "--compatibility", f"manylinux_{GLIBC.replace('.', '_')}"),
        env=environment,
    )
    (wheel,) = DIST.glob(f"*_{architecture}.whl")
    return wheel


def pack_archive(wheel: Path, architecture: str, seconds: int) -> Path:
    """Pack the program of a wheel with its manual pages, completions and licenses."""
    files: dict[str, tuple[bytes, int]] = {}
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            where = place(name)
            if where is not None:
                files[where] = (packed.read(name), 0o755 if where.startswith("bin/") else 0o644)
    files["README.md"] = ((ROOT / "README.md").read_bytes(), 0o644)
    top = f"{'-'.join(wheel.name.split('-')[:2])}-{architecture}-linux"
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mode, entry.mtime = len(content), mode, seconds
            archive.addfile(entry, io.BytesIO(content))
    archive = DIST / f"{top}.tar.gz"
    archive.write_bytes(gzip.compress(plain.getvalue(), mtime=seconds))
    return archive


def place(name: str) -> str | None:
    """Where a file of the wheel stands in the archive, if it does."""
    top, _, inside = name.partition("/")
    if top.endswith(".data"):
        kind, _, path = inside.partition("/")
        if kind == "scripts":
            return f"bin/{path}"
        is_shared = path.startswith("share/") and path.split("/")[1] in SHARED
        return path if kind == "data" and is_shared else None
    folder, _, path = inside.partition("/")
    return path if top.endswith(".dist-info") and folder in ("licenses", "sboms") else None


def check() -> None:
    """Let those judge who know what a registry and its users expect."""
    environment = {**os.environ, "PATH": f"{TOOLS}:{os.environ['PATH']}"}
    wheels = sorted(DIST.glob("*.whl"))
    run("twine", "check", "--strict", *wheels, *DIST.glob("gpumon-*[0-9].tar.gz"), env=environment)
    run("check-wheel-contents", *wheels, env=environment)
    for wheel in wheels:
        run("auditwheel", "show", wheel, env=environment)


def run(*command: str | Path, env: dict[str, str]) -> None:
    words = [str(word) for word in command]
    words[0] = shutil.which(words[0], path=env["PATH"]) or words[0]
    done = subprocess.run(words, cwd=ROOT, env=env, check=False)
    if done.returncode != 0:
        sys.exit(f"`{' '.join(words)}` failed with code {done.returncode}; its own messages are above")


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in ARCHITECTURES]
    if unknown:
        sys.exit(f"usage: tools/dist.py [ARCHITECTURE...], of {', '.join(ARCHITECTURES)}")
    main(sys.argv[1:] or ARCHITECTURES)
