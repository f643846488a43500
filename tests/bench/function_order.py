#!/usr/bin/env python3
"""Writes cli/functions.ld, the order of functions in the release binary: `make function-order`.

The kernel maps 64 KiB of code around each function that is called. If the functions that the server
and the collector call lie next to each other, fewer pages of both processes are mapped.

The names of Rust functions contain hashes, which depend on the version of the compiler and the
settings. They are replaced with patterns, so that the file need not be written again after every
change. If it is too old, functions are missing from it, and the memory of both processes grows.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

from machine import GPUMON, PORT, ROOT, Machine
from measure import wait_until_reachable

TRACE = Path(__file__).with_name("trace_functions.py")
SCRIPT = ROOT / "cli/functions.ld"
#: The time in which the collector and the server call the functions of normal operation, in
#: seconds. Some readings are taken every 30 seconds.
SECONDS = 70
#: The hash at the end of a mangled name, and the hash of a crate in the newer form of names.
HASHES = ((re.compile(r"17h[0-9a-f]{16}E"), "17h*E"), (re.compile(r"Cs[0-9A-Za-z]+_"), "Cs*_"))
#: A suffix that the optimizer adds to the name.
SUFFIX = re.compile(r"(\.llvm)?\.\d+$")
REQUESTS = ("/", "/api/v1/snapshot", "/metrics")
#: Commands that print once and end.
COMMANDS = ([], ["-L"], ["--query-gpu=index,utilization.gpu", "--format=csv"])


def main():
    # Without a script, the functions stay in the sections of the compiler, which this option keeps.
    SCRIPT.write_text("")
    keep_sections = "-C link-arg=-Wl,-z,keep-text-section-prefix"
    build = f"cargo rustc --locked --release --bin gpumon -- -C strip=none {keep_sections}"
    subprocess.run(build.split(), cwd=ROOT, check=True)
    with Machine(gpus=2) as machine:
        traces = [
            trace(machine, ["collect"]),
            trace(machine, ["serve", "--listen", f"127.0.0.1:{PORT}"], during=send_requests),
            *(trace(machine, command) for command in COMMANDS),
        ]
    SCRIPT.write_text(linker_script(order_patterns(traces, read_functions())))
    print(f"{SCRIPT.relative_to(ROOT)} is written: compile the release build again")


def trace(machine, arguments, during=None):
    """Returns the symbols of the functions that a command calls."""
    with tempfile.NamedTemporaryFile("r") as output:
        command = ["gdb", "-batch", "-x", TRACE, "--args", GPUMON, *arguments]
        environment = {**os.environ, **machine.environment, "GPUMON_CONFIG": "none"}
        environment |= {"TRACE_OUTPUT": output.name, "TRACE_SECONDS": str(SECONDS)}
        if during:
            threading.Thread(target=during, daemon=True).start()
        done = subprocess.run(
            command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
        )
        called = output.read().split()
    if not called:
        sys.exit(f"`{' '.join(map(str, command))}` traced no function:\n{done.stderr}")
    return called


def send_requests():
    wait_until_reachable(PORT, "/readyz")
    for path in REQUESTS:
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}") as answer:
            answer.read()


@dataclass(frozen=True)
class Function:
    bytes: int
    #: The symbol in the section in which the compiler put the function.
    exact: str
    #: The same for all versions and instances of the function.
    pattern: str


def read_functions():
    """Returns the functions of the program by their symbols."""
    listed = subprocess.check_output(["nm", "--format=sysv", GPUMON], text=True)
    functions = {}
    for line in listed.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 7 and fields[6].startswith(".text") and fields[4]:
            symbol, size, section = fields[0], fields[4], fields[6]
            exact = SUFFIX.sub("*", f"{section}.{symbol}")
            pattern = exact
            for hash_, anything in HASHES:
                pattern = hash_.sub(anything, pattern)
            functions[symbol] = Function(int(size, 16), exact, pattern)
    return functions


def order_patterns(traces, functions):
    """Returns the patterns of the called functions.

    Functions of both processes come first, then those of one process, then those of commands. If a
    pattern would mainly match instances of a generic function that are never called, the exact
    symbols replace it.
    """
    collect, serve, *_ = [set(calls) for calls in traces]
    called = [
        symbol
        for symbol in dict.fromkeys(symbol for calls in traces for symbol in calls)
        if symbol in functions
    ]
    called.sort(key=lambda symbol: -(symbol in collect) - (symbol in serve))
    called = [functions[symbol] for symbol in called]
    called_bytes, matched_bytes = sum_by_pattern(called), sum_by_pattern(functions.values())
    return list(
        dict.fromkeys(
            function.pattern
            if matched_bytes[function.pattern] < 1.5 * called_bytes[function.pattern]
            else function.exact
            for function in called
        )
    )


def sum_by_pattern(functions):
    total = defaultdict(int)
    for function in functions:
        total[function.pattern] += function.bytes
    return total


def linker_script(patterns):
    """Returns a linker script that puts these functions in front of all others."""
    lines = "\n".join(f"    *({pattern})" for pattern in patterns)
    return (
        "/* The order of functions, written by `make function-order`. */\n"
        f"SECTIONS {{\n  .text.ordered : {{\n{lines}\n  }}\n}} INSERT BEFORE .text;\n"
    )


if __name__ == "__main__":
    main()
