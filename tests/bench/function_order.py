#!/usr/bin/env python3
"""Writes cli/functions.ld, the order of functions in the release binary: `make function-order`.

The kernel maps 64 KiB of code around each function that is called. If the functions that the server
and the collector call lie next to each other, fewer pages of both processes are mapped.

The names of Rust functions contain the hashes of their crates, which depend on the version of the
compiler and the settings. The name of a generic function ends with the crate for which it was
compiled, which is any of the crates that use it. Both are replaced with patterns, so that the file
need not be written again after every change. If it is too old, functions are missing from it, and
the memory of both processes grows.

The compiler keeps one of several functions with the same instructions. Which one depends on whether
the build names a target, as the builds of packages do. So both builds are traced.
"""

import os
import re
import subprocess
import sys
import tempfile
import threading
import urllib.request
from pathlib import Path

from machine import PORT, ROOT, Machine
from measure import wait_until_reachable

TRACE = Path(__file__).with_name("trace_functions.py")
SCRIPT = ROOT / "cli/functions.ld"
#: The time in which the collector and the server call the functions of normal operation, in
#: seconds. Some readings are taken every 30 seconds.
SECONDS = 70
#: The hash of a crate in a mangled name, and a reference to an earlier part of the name, which
#: depends on the length of the hashes.
HASHES = ((re.compile(r"Cs[0-9A-Za-z]+_"), "Cs*_"), (re.compile(r"B[0-9A-Za-z]*_"), "B*_"))
#: The end of a pattern that may be a crate, with the length of its name, or a reference to a crate.
CRATE = re.compile(r"(?:Cs\*_(\d+)(\w+)|B\*_)$")
#: A suffix that the optimizer adds to the name.
SUFFIX = re.compile(r"(\.llvm)?\.\d+$")
SERVE = ["serve", "--listen", f"127.0.0.1:{PORT}"]
REQUESTS = ("/", "/api/v1/snapshot", "/metrics")
#: Commands that print once and end.
COMMANDS = ([], ["-L"], ["--query-gpu=index,utilization.gpu", "--format=csv"])


def main():
    # Without a script, the functions stay in the sections of the compiler, which this option keeps.
    SCRIPT.write_text("")
    keep_sections = "-C link-arg=-Wl,-z,keep-text-section-prefix"
    host = subprocess.check_output(["rustc", "--print", "host-tuple"], text=True).strip()
    build = "cargo rustc --locked --release --bin gpumon"
    ranked = []
    for folder, target in (("", ""), (host, f"--target {host}")):
        command = f"{build} {target} -- -C strip=none {keep_sections}"
        subprocess.run(command.split(), cwd=ROOT, check=True)
        ranked += rank_functions(ROOT / "target" / folder / "release/gpumon")
    SCRIPT.write_text(linker_script(order_patterns(ranked)))
    print(f"{SCRIPT.relative_to(ROOT)} is written: compile the release build again")


def rank_functions(program):
    """Returns the pattern of each function that the program calls, with its rank: 2 for functions
    of both processes, 1 for functions of one process, 0 for functions of commands.
    """
    with Machine(gpus=2) as machine:
        traces = [
            trace(program, machine, ["collect"]),
            trace(program, machine, SERVE, during=send_requests),
            *(trace(program, machine, command) for command in COMMANDS),
        ]
    patterns = read_patterns(program)
    collect, serve, *_ = [set(calls) for calls in traces]
    return [
        ((symbol in collect) + (symbol in serve), patterns[symbol])
        for calls in traces
        for symbol in calls
        if symbol in patterns
    ]


def trace(program, machine, arguments, during=None):
    """Returns the symbols of the functions that a command of the program calls."""
    with tempfile.NamedTemporaryFile("r") as output:
        command = ["gdb", "-batch", "-x", TRACE, "--args", program, *arguments]
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


def read_patterns(program):
    """Returns patterns for the functions of the program, by their symbols. A pattern matches the
    section in which the compiler put the function.
    """
    listed = subprocess.check_output(["nm", "--format=sysv", program], text=True)
    patterns = {}
    for line in listed.splitlines():
        fields = [field.strip() for field in line.split("|")]
        if len(fields) == 7 and fields[6].startswith(".text") and fields[4]:
            symbol, section = fields[0], fields[6]
            pattern = SUFFIX.sub("*", f"{section}.{symbol}")
            for hash_, anything in HASHES:
                pattern = hash_.sub(anything, pattern)
            patterns[symbol] = strip_crate(pattern)
    return patterns


def strip_crate(pattern):
    """Returns a pattern for a generic function that matches whichever crate compiled it."""
    crate = CRATE.search(pattern)
    if crate and (not crate[1] or int(crate[1]) == len(crate[2])):
        return pattern[: crate.start()] + "*"
    return pattern


def order_patterns(ranked):
    """Returns the patterns with the highest ranks first."""
    ranked = sorted(ranked, key=lambda pair: -pair[0])
    return list(dict.fromkeys(pattern for _, pattern in ranked))


def linker_script(patterns):
    """Returns a linker script that puts these functions in front of all others."""
    lines = "\n".join(f"    *({pattern})" for pattern in patterns)
    return (
        "/* The order of functions, written by `make function-order`. */\n"
        f"SECTIONS {{\n  .text.ordered : {{\n{lines}\n  }}\n}} INSERT BEFORE .text;\n"
    )


if __name__ == "__main__":
    main()
