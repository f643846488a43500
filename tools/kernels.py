#!/usr/bin/env python3
"""Compiles the CUDA kernels of workload/kernels/ into files next to them, which are embedded in the
program.

    tools/kernels.py           compile all kernels; the first run installs the compiler
    tools/kernels.py --check   fail if the compiled files do not match the sources

A source is compiled to PTX for the oldest GPUs, `name.ptx`, unless its first line specifies
otherwise: `// Compiled for: compute_80, sm_90a.` produces `name.compute_80.ptx` and, as machine
code for one architecture, `name.sm_90a.cubin`. `listing.txt` has the parameters and the resources
of each kernel: shared memory, registers and register spills on each architecture on which a driver
may run it.

The compiler is NVIDIA's NVRTC from a pinned package, called as a library, and the assembler `ptxas`
comes from another package. No GPU, driver or toolkit is needed. If they are not installed, a check
only compares each source with the digest in the listing, and prints this. Nothing is downloaded for
a check.
"""

from __future__ import annotations

import ctypes
import functools
import hashlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "workload" / "kernels"
COMPILER = ROOT / "target" / "kernels"
LIBRARY = COMPILER / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"
ASSEMBLER = COMPILER / "nvidia" / "cuda_nvcc" / "bin" / "ptxas"
LISTING = KERNELS / "listing.txt"
#: For each architecture, the oldest PTX version that has all features of the kernels. NVRTC writes
#: the newest version that it supports, and drivers as old as NVRTC or older would refuse it.
PTX_VERSIONS = {"compute_60": "6.0", "compute_80": "7.0", "compute_89": "8.4", "compute_90": "7.8"}
OLDEST = "compute_60"
#: The architectures for which registers are counted: Ampere, Ada, Hopper and both Blackwells.
LISTED = ["sm_80", "sm_89", "sm_90a", "sm_100a", "sm_120"]
#: NVRTC prints this warning for every architecture before 7.5. These architectures are still
#: supported by drivers of the 580 series.
KNOWN_COMPLAINT = "nvrtc: warning: Architectures prior to "


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    sources = sorted(KERNELS.glob("*.cu"))
    if not sources:
        sys.exit(f"there are no kernels in {KERNELS}")
    if arguments:
        return check_compiled_files(sources)
    if not (LIBRARY.is_file() and ASSEMBLER.is_file()):
        requirements = ["--requirement", str(KERNELS / "requirements.txt")]
        pip = [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--target",
            str(COMPILER),
        ]
        subprocess.run([*pip, *requirements], check=True)
    for path, content in compile_everything(sources).items():
        path.write_bytes(content)
        print(f"wrote {path.relative_to(ROOT)}")
    return 0


def check_compiled_files(sources: list[Path]) -> int:
    made = {
        target_path(source, architecture)
        for source in sources
        for architecture in list_architectures(source)
    }
    stale = sorted(path.name for path in {*KERNELS.glob("*.ptx"), *KERNELS.glob("*.cubin")} - made)
    if LIBRARY.is_file() and ASSEMBLER.is_file():
        stale += [
            path.name
            for path, content in compile_everything(sources).items()
            if _read_if_present(path) != content
        ]
        done = "compiled again and compared"
    else:
        listed = _read_if_present(LISTING).decode()
        stale += [source.name for source in sources if _listing_head(source) not in listed]
        stale += [path.name for path in sorted(made) if not path.is_file()]
        done = (
            "digests of the sources compared, but not compiled, because the compiler is not "
            "installed (tools/kernels.py installs it)"
        )
    for name in stale:
        print(f"workload/kernels/{name} is out of date: run tools/kernels.py")
    if not stale:
        print(f"{len(sources)} kernel files: {done}")
    return 1 if stale else 0


def list_architectures(source: Path) -> list[str]:
    """Return the architectures of a source."""
    first = source.read_text(encoding="utf-8").split("\n", 1)[0]
    named = re.fullmatch(r"// Compiled for: (.*)\.", first)
    return named[1].split(", ") if named else [OLDEST]


def target_path(source: Path, architecture: str) -> Path:
    ending = "ptx" if architecture in PTX_VERSIONS else "cubin"
    return source.with_suffix(
        f".{ending}" if architecture == OLDEST else f".{architecture}.{ending}"
    )


def compile_everything(sources: list[Path]) -> dict[Path, bytes]:
    """Return all compiled files with their paths."""
    made = {}
    for source in sources:
        for architecture in list_architectures(source):
            made[target_path(source, architecture)] = compile_code(source, architecture)
    made[LISTING] = make_listing(sources).encode()
    return made


def compile_code(source: Path, architecture: str) -> bytes:
    """Return the compiled code of a source for an architecture."""
    if architecture not in PTX_VERSIONS:
        return compile_source(source, architecture)[0]
    ptx = compile_source(source, architecture)[0].decode().rstrip("\0")
    ptx, versions = re.subn(
        r"^\.version .*$",
        f".version {PTX_VERSIONS[architecture]}",
        ptx,
        count=1,
        flags=re.MULTILINE,
    )
    if versions != 1:
        sys.exit(f"the PTX of {source.name} has no `.version` line")
    return f"// Made by tools/kernels.py of {source.name}.\n{ptx}".encode()


def make_listing(sources: list[Path]) -> str:
    """Return a listing of each kernel's parameters and resources."""
    text = [
        "Made by tools/kernels.py: bytes of shared memory that the code names, and registers a "
        "thread on each"
    ]
    text += [
        "architecture, with bytes spilled behind a plus; a hyphen is where it does not run.",
        "",
    ]
    for source in sources:
        text += [
            _listing_head(source),
            f"{'kernel':24} shared " + "".join(f"{name:>8}" for name in LISTED) + "  takes",
        ]
        uses = {}
        for architecture in list_architectures(source):
            for listed in LISTED:
                if runs_on(architecture, listed):
                    uses[listed] = read_resource_use(source, architecture, listed)
        for name, takes in read_parameters(source).items():
            of = {listed: use[name] for listed, use in uses.items() if name in read_resource_use}
            shared = max(shared for _, shared in of.values())
            cells = "".join(f"{of[listed][0] if listed in of else '-':>8}" for listed in LISTED)
            text.append(f"{name:24} {shared:6} {cells}  {takes}".rstrip())
        text.append("")
    return "\n".join(text)


def runs_on(architecture: str, listed: str) -> bool:
    """Return whether code for an architecture runs on another one. PTX runs on newer architectures,
    machine code only on its own.
    """
    number = lambda name: int(re.search(r"\d+", name)[0])
    return (
        architecture == listed
        if architecture not in PTX_VERSIONS
        else number(architecture) <= number(listed)
    )


def read_resource_use(source: Path, architecture: str, listed: str) -> dict[str, tuple[str, int]]:
    """Return, for each kernel, its registers (with spills) and its shared memory on an
    architecture.
    """
    if architecture in PTX_VERSIONS:
        options = [f"--gpu-name={listed}", "--verbose", "--output-file=/dev/null", "-"]
        ptx = compile_code(source, architecture)
        log = subprocess.run(
            [ASSEMBLER, *options], input=ptx, capture_output=True, check=True
        ).stderr.decode()
    else:
        log = compile_source(source, architecture)[1]
    number = lambda pattern, about: sum(map(int, re.findall(pattern, about)))
    found = {}
    for kernel, about in re.findall(
        r"entry function '(\w+)'(.*?)(?=Compiling|$)", log, flags=re.DOTALL
    ):
        registers = str(number(r"Used (\d+) registers", about))
        spilled = number(r"(\d+) bytes spill stores", about) + number(
            r"(\d+) bytes spill loads", about
        )
        found[kernel] = (
            f"{registers}+{spilled}" if spilled else registers,
            number(r"(\d+) bytes smem", about),
        )
    return found


def read_parameters(source: Path) -> dict[str, str]:
    """Return the parameter types of each kernel in PTX notation."""
    found = {}
    for architecture in list_architectures(source):
        ptx = compile_source(source, architecture.replace("sm", "compute"))[0].decode()
        for kernel, head in re.findall(r"\.entry (\w+)\((.*?)\)", ptx, flags=re.DOTALL):
            found[kernel] = " ".join(
                _parse_parameter(line) for line in head.split(",") if line.strip()
            )
    return found


def _parse_parameter(line: str) -> str:
    """Return a short type: `b8[128]` for `.param .align 64 .b8 name[128]`, and `u64` for `.param
    .u64 name`.
    """
    kind, size = re.search(r"\.(\w+) \w+?(\[\d+\])?\s*$", line.strip()).groups()
    return kind + (size or "")


@functools.cache
def compile_source(source: Path, architecture: str) -> tuple[bytes, str]:
    """Return the compiled code of a source, and the compiler's messages about resources."""
    nvrtc = ctypes.CDLL(str(LIBRARY))
    program = ctypes.c_void_p()
    name = source.name.encode()
    headers = included_headers(source)
    texts = (ctypes.c_char_p * len(headers))(*[header.read_bytes() for header in headers])
    names = (ctypes.c_char_p * len(headers))(*[header.name.encode() for header in headers])
    text = source.read_bytes()
    _check_result(
        nvrtc,
        nvrtc.nvrtcCreateProgram(ctypes.byref(program), text, name, len(headers), texts, names),
    )
    options = [f"--gpu-architecture={architecture}", "--std=c++17", "--ptxas-options=-v"]
    array = (ctypes.c_char_p * len(options))(*[option.encode() for option in options])
    code = nvrtc.nvrtcCompileProgram(program, len(options), array)
    log = _read_text(nvrtc, program, "ProgramLog").decode().rstrip("\0")
    complaints = [
        line
        for line in log.splitlines()
        if "ptxas" not in line and not line.startswith(KNOWN_COMPLAINT)
    ]
    complaints = [line for line in complaints if line.strip()]
    if code != 0 or complaints or "warning" in log.replace(KNOWN_COMPLAINT, ""):
        sys.exit("\n".join([f"{source.relative_to(ROOT)} does not compile without warnings:", log]))
    made = _read_text(nvrtc, program, "PTX" if architecture.startswith("compute") else "CUBIN")
    _check_result(nvrtc, nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))
    return made, log


def included_headers(source: Path) -> list[Path]:
    """Return the headers that a source includes."""
    return [
        KERNELS / name
        for name in re.findall(
            r'^#include "(.*)"$', source.read_text(encoding="utf-8"), re.MULTILINE
        )
    ]


def _listing_head(source: Path) -> str:
    digest = hashlib.sha256(
        b"".join(file.read_bytes() for file in [source, *included_headers(source)])
    ).hexdigest()
    return f"{source.name} SHA-256 {digest}"


def _read_if_present(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""


def _read_text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    _check_result(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _check_result(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, text))
    return text.raw


def _check_result(nvrtc: ctypes.CDLL, code: int) -> None:
    if code != 0:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        sys.exit(f"NVRTC failed: {nvrtc.nvrtcGetErrorString(code).decode()}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
