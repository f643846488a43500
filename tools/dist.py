#!/usr/bin/env python3
"""Builds the release of gpumon in dist/: source distribution, wheels, archives and Debian packages.

    tools/dist.py [ARCHITECTURE...]

Zig compiles for each architecture (x86_64, aarch64; by default both), for every Linux with glibc
2.17 or newer. The output does not depend on the time or the folder of the build: two builds of a
commit are identical byte for byte, which tests/packages/again.py checks.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import need
import package_deb
import release_notes
import sbom

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "python" / "build_backend"))
import gpumon_index  # noqa: E402

DIST = ROOT / "dist"
#: The folder with the programs of `dist-requirements.txt`.
TOOLS = ROOT / "target" / "dist-tools" / "bin"
#: A separate folder, so that no output of other builds is released.
TARGET = ROOT / "target" / "dist"
ARCHITECTURES = ["x86_64", "aarch64"]
#: The oldest supported C library, in the notation of wheels.
PLATFORM = "manylinux_2_17"
#: The folders of the wheel's `share` that the archive contains.
SHARED = ["bash-completion", "zsh", "fish", "man"]
#: The maximum size of the program. Growth beyond this limit must be explained before a release. Of
#: 20.7 MB, 14.8 are code, 3.0 are tables for panics, 2.2 are constants such as compiled kernels and
#: the page, and 0.7 are pointers.
PROGRAM_BYTES = 21_500_000


def main(architectures: list[str]) -> None:
    environment = reproducible_environment()
    version = release_notes.read_version(ROOT)
    shutil.rmtree(DIST, ignore_errors=True)
    gpumon_index.write_readme()
    run("maturin", "sdist", "--out", DIST, env=environment)
    # Manual pages and completions are the same for all architectures. A program for this machine
    # writes them.
    share_environment = {
        **os.environ,
        "SOURCE_DATE_EPOCH": environment["SOURCE_DATE_EPOCH"],
        "GPUMON_PROFILE": "dev",
    }
    run(
        sys.executable, ROOT / "python" / "build_backend" / "gpumon_share.py", env=share_environment
    )
    seconds = int(environment["SOURCE_DATE_EPOCH"])
    for architecture in architectures:
        wheel = build_wheel(architecture, environment)
        check_program(wheel, architecture)
        package_deb.build_package(
            pack_archive(wheel, architecture, seconds), architecture, version, seconds
        )
    check_registry_requirements(environment)
    sums = [
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}"
        for path in sorted(DIST.iterdir())
    ]
    (DIST / "SHA256SUMS").write_text("\n".join(sums) + "\n", encoding="utf-8")
    for path in sorted(DIST.iterdir()):
        print(f"{path.stat().st_size:>12,}  {path.relative_to(ROOT)}")


def reproducible_environment() -> dict[str, str]:
    """Return an environment in which the build does not depend on time and folder."""
    committed = run_and_read("git", "log", "-1", "--format=%ct")
    if changed := run_and_read("git", "status", "--porcelain", "--untracked-files=no"):
        sys.exit(
            f"a release only contains committed files; commit or stash these changes, then try "
            f"again:\n{changed}"
        )
    found, wanted = run_and_read("rustc", "--version"), need.rust_version()
    if found.split()[1] != wanted:
        sys.exit(
            f"releases need Rust {wanted}, but the compiler is {found}: run `rustup default "
            f"{wanted}`, then try again"
        )
    homes = [os.environ.get("CARGO_HOME"), Path.home() / ".cargo", need.TOOLS / "cargo"]
    # ROOT comes first in the list. A home may be below ROOT, and the compiler uses the last prefix
    # in the list that matches.
    settings = tomllib.loads((ROOT / ".cargo/config.toml").read_text())
    folders = [f"{ROOT}=/gpumon", *(f"{home}=/cargo" for home in homes if home)]
    return {
        "SOURCE_DATE_EPOCH": committed,
        **os.environ,
        "PATH": f"{TOOLS}:{os.environ['PATH']}",
        "CARGO_TARGET_DIR": str(TARGET),
        "CARGO_ENCODED_RUSTFLAGS": "\x1f".join(
            [*settings["build"]["rustflags"], *(f"--remap-path-prefix={path}" for path in folders)]
        ),
    }


def build_wheel(architecture: str, environment: dict[str, str]) -> Path:
    target = f"{architecture}-unknown-linux-gnu"
    TARGET.mkdir(parents=True, exist_ok=True)
    bill = TARGET / "gpumon.cdx.json"
    sbom.write_sbom(architecture, bill)
    run(
        *(
            "maturin",
            "build",
            "--profile",
            "release",
            "--zig",
            "--out",
            DIST,
            "--sbom-include",
            bill,
        ),
        *("--target", target, "--compatibility", PLATFORM),
        env=environment,
    )
    (wheel,) = DIST.glob(f"*_{architecture}.whl")
    gpumon_index.add_addresses_to_wheel(wheel, gpumon_index.repository_address())
    return wheel


def pack_archive(wheel: Path, architecture: str, seconds: int) -> Path:
    """Pack the program of a wheel with its manual pages, completions and licenses."""
    files: dict[str, tuple[bytes, int]] = {}
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            where = find_program_in_wheel(name)
            if where is not None:
                files[where] = (packed.read(name), 0o755 if where.startswith("bin/") else 0o644)
    files["README.md"] = (gpumon_index.README.read_bytes(), 0o644)
    # The archive has the name of the program and the version of the wheel.
    top = f"gpumon-{wheel.name.split('-')[1]}-{architecture}-linux"
    plain = io.BytesIO()
    with tarfile.open(fileobj=plain, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, (content, mode) in sorted(files.items()):
            entry = tarfile.TarInfo(f"{top}/{name}")
            entry.size, entry.mode, entry.mtime = len(content), mode, seconds
            archive.addfile(entry, io.BytesIO(content))
    archive = DIST / f"{top}.tar.gz"
    archive.write_bytes(package_deb.compress_gzip(plain.getvalue(), seconds))
    return archive


def find_program_in_wheel(name: str) -> str | None:
    """Return the path that a file of the wheel has in the archive, or nothing if the archive does
    not include the file.
    """
    top, _, inside = name.partition("/")
    if top.endswith(".data"):
        kind, _, path = inside.partition("/")
        if kind == "scripts":
            return f"bin/{path}"
        is_shared = path.startswith("share/") and path.split("/")[1] in SHARED
        return path if kind == "data" and is_shared else None
    folder, _, path = inside.partition("/")
    return path if top.endswith(".dist-info") and folder in ("licenses", "sboms") else None


def check_program(wheel: Path, architecture: str) -> None:
    """Exit if the program needs a newer system than its wheel declares, or is too large."""
    tag = json.loads(run_and_read(TOOLS / "auditwheel", "show", "--json", wheel))["overall_tag"]
    if tag != f"{PLATFORM}_{architecture}":
        sys.exit(
            f"{wheel.name} needs {tag} instead of {PLATFORM}_{architecture}: run `auditwheel "
            f"show`, which names the symbols that need it"
        )
    with zipfile.ZipFile(wheel) as packed:
        (size,) = (
            file.file_size for file in packed.infolist() if ".data/scripts/" in file.filename
        )
    if size > PROGRAM_BYTES:
        sys.exit(
            f"the program for {architecture} has {size:,} bytes, but at most {PROGRAM_BYTES:,} are "
            f"allowed: find out what makes it larger"
        )


def check_registry_requirements(environment: dict[str, str]) -> None:
    """Check that the wheels and the source distribution meet the requirements of PyPI and of
    installers.
    """
    wheels = sorted(DIST.glob("*.whl"))
    run(
        "twine",
        "check",
        "--strict",
        *wheels,
        *DIST.glob("jupyterlab_gpumon-*.tar.gz"),
        env=environment,
    )
    run("check-wheel-contents", *wheels, env=environment)


def run_and_read(*command: str | Path) -> str:
    words = [str(word) for word in command]
    try:
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    except OSError as error:
        sys.exit(
            f"`{' '.join(words)}` could not be run: {error.strerror}; run `make dist`, which "
            f"installs the tools"
        )
    if done.returncode != 0:
        sys.exit(f"`{' '.join(words)}` failed with code {done.returncode}: {done.stderr.strip()}")
    return done.stdout.strip()


def run(*command: str | Path, env: dict[str, str]) -> None:
    words = [str(word) for word in command]
    words[0] = shutil.which(words[0], path=env["PATH"]) or words[0]
    done = subprocess.run(words, cwd=ROOT, env=env, check=False)
    if done.returncode != 0:
        sys.exit(f"`{' '.join(words)}` failed with code {done.returncode}; its output is above")


if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in ARCHITECTURES]
    if unknown:
        sys.exit(
            f"usage: tools/dist.py [ARCHITECTURE...], with architectures of "
            f"{', '.join(ARCHITECTURES)}"
        )
    try:
        main(sys.argv[1:] or ARCHITECTURES)
    except release_notes.VersionMismatch as error:
        sys.exit(str(error))
