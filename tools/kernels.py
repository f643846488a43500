#!/usr/bin/env python3
"""Compiles the CUDA kernels of workload/kernels/ into the PTX that lies beside them and that the program embeds.

    tools/kernels.py           compile them anew; installs the compiler into target/kernels at the first time
    tools/kernels.py --check   fail where what lies there is not what the sources give

The compiler is NVIDIA's NVRTC of a pinned package, called as a library: no GPU, driver or toolkit is needed. Where the
package is not installed, a check compares each source with the digest that its PTX begins with, and says so: nothing is
downloaded for it.
"""

from __future__ import annotations

import ctypes
import hashlib
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
KERNELS = ROOT / "workload" / "kernels"
COMPILER = ROOT / "target" / "kernels"
LIBRARY = COMPILER / "nvidia" / "cuda_nvrtc" / "lib" / "libnvrtc.so.12"
#: The oldest architecture that the kernels are for, and the oldest version of PTX that has all that they use. NVRTC
#: writes the newest that it knows, which the drivers of that time and before refuse.
ARCHITECTURE = "compute_60"
PTX_VERSION = "6.0"
OPTIONS = [f"--gpu-architecture={ARCHITECTURE}", "--std=c++17"]
#: It says so of every architecture before 7.5, which drivers of the 580 series still know.
KNOWN_COMPLAINT = "nvrtc: warning: Architectures prior to "


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        sys.exit(__doc__)
    sources = sorted(KERNELS.glob("*.cu"))
    if not sources:
        sys.exit(f"there are no kernels in {KERNELS}")
    if arguments:
        return check(sources)
    if not LIBRARY.is_file():
        requirements = ["--requirement", str(KERNELS / "requirements.txt")]
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", str(COMPILER)]
        subprocess.run([*pip, *requirements], check=True)
    for source in sources:
        target(source).write_text(compiled(source), encoding="utf-8")
        print(f"wrote {target(source).relative_to(ROOT)}")
    return 0


def check(sources: list[Path]) -> int:
    stale = [path.name for path in KERNELS.glob("*.ptx") if not path.with_suffix(".cu").is_file()]
    if LIBRARY.is_file():
        stale += [source.name for source in sources if _there(source) != compiled(source)]
        done = "compiled again and compared"
    else:
        stale += [source.name for source in sources if not _there(source).startswith(_head(source))]
        done = "sources compared by digest; not compiled, since the compiler is not installed (tools/kernels.py does it)"
    for name in stale:
        print(f"workload/kernels/{name}: the PTX is of another source; run tools/kernels.py")
    if not stale:
        print(f"{len(sources)} kernel files: {done}")
    return 1 if stale else 0


def target(source: Path) -> Path:
    return source.with_suffix(".ptx")


def compiled(source: Path) -> str:
    """The PTX of a source, as it is to lie beside it."""
    nvrtc = ctypes.CDLL(str(LIBRARY))
    program = ctypes.c_void_p()
    name = source.name.encode()
    _done(nvrtc, nvrtc.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), name, 0, None, None))
    options = (ctypes.c_char_p * len(OPTIONS))(*[option.encode() for option in OPTIONS])
    code = nvrtc.nvrtcCompileProgram(program, len(OPTIONS), options)
    log = _text(nvrtc, program, "ProgramLog").splitlines()
    log = [line for line in log if line.strip() and not line.startswith(KNOWN_COMPLAINT)]
    if code != 0 or log:
        sys.exit("\n".join([f"{source.relative_to(ROOT)} does not compile without complaint:", *log]))
    ptx = _text(nvrtc, program, "PTX")
    _done(nvrtc, nvrtc.nvrtcDestroyProgram(ctypes.byref(program)))
    ptx, versions = re.subn(r"^\.version .*$", f".version {PTX_VERSION}", ptx, count=1, flags=re.MULTILINE)
    if versions != 1:
        sys.exit(f"the PTX of {source.name} names no version")
    return _head(source) + ptx


def _head(source: Path) -> str:
    digest = hashlib.sha256(source.read_bytes()).hexdigest()
    return f"// Made by tools/kernels.py of {source.name}, SHA-256 {digest}.\n"


def _there(source: Path) -> str:
    return target(source).read_text(encoding="utf-8") if target(source).is_file() else ""


def _text(nvrtc: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> str:
    size = ctypes.c_size_t()
    _done(nvrtc, getattr(nvrtc, f"nvrtcGet{what}Size")(program, ctypes.byref(size)))
    text = ctypes.create_string_buffer(size.value)
    _done(nvrtc, getattr(nvrtc, f"nvrtcGet{what}")(program, text))
    return text.value.decode()


def _done(nvrtc: ctypes.CDLL, code: int) -> None:
    if code != 0:
        nvrtc.nvrtcGetErrorString.restype = ctypes.c_char_p
        sys.exit(f"NVRTC fails: {nvrtc.nvrtcGetErrorString(code).decode()}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
