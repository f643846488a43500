#!/usr/bin/env python3
"""Compares gpumon with NVIDIA's nvidia-smi on a real GPU, for many command lines (forms).

    python3 tests/conformance/run.py [--gpumon PATH] [--busy] [--daemon] [--fields] [--only TEXT]
        [--verbose]

Runs both programs alternately, and prints for every form how many cells are equal, how many changed
in the meantime, and what differs. --busy starts a load first (PyTorch or CuPy). --daemon starts
`gpumon serve`, so that gpumon answers from the server's records. --fields compares each field of
--query-gpu in a separate query instead. The exit code is 1 if there is any difference.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from compare import compare_outputs
from forms import (
    HANDED_OVER,
    ODDITIES,
    QUERIES,
    REFUSALS,
    list_commands,
    list_field_queries,
    list_fields,
)

# Words that differ because the programs themselves differ.
PROCESS_OWN = re.compile(r"python3 -c .*")

# The number of attempts for a form in which a changing value might cause a difference.
TRIES = 4

LOAD = """
import sys, time
try:
    import torch
    kept = torch.zeros(3 << 28, dtype=torch.uint8, device=f"cuda:{sys.argv[1]}")
    a = torch.randn(8192, 8192, device=f"cuda:{sys.argv[1]}", dtype=torch.bfloat16)
    step, wait = (lambda: a @ a), torch.cuda.synchronize
except ImportError:
    import cupy
    cupy.cuda.Device(int(sys.argv[1])).use()
    a = cupy.random.rand(8192, 8192, dtype=cupy.float32)
    step, wait = (lambda: a @ a), cupy.cuda.Device().synchronize
step(); wait(); print("ready", flush=True)
while sys.argv[2] == "work":
    step(); wait()
time.sleep(10000)
"""


def capture_output(command, arguments, environment=None):
    done = subprocess.run(
        [*command, *arguments], capture_output=True, text=True, timeout=60, env=environment
    )
    text = done.stdout + done.stderr
    if "--gpm-metrics" in arguments and done.returncode == 0:
        # In its first rounds, NVIDIA's tool has no values yet, and the number of these rounds
        # varies. So only the last quarter of all rounds is compared.
        lines = text.split("\n")
        head = [line for line in lines if line.startswith("#")]
        rows = [line for line in lines if line and not line.startswith("#")]
        text = "\n".join(head + rows[len(rows) * 3 // 4 :])
    return done.returncode, text


def compare_command(arguments, programs):
    """Runs both programs alternately until their outputs have no difference, at most `TRIES` times.
    Several attempts are needed, because some values only change after a while.
    """
    smi, own, environment = programs
    theirs, ours = [capture_output(smi, arguments)], []
    is_csv = any(
        word.startswith("--query-") and not word.startswith("--query-supported")
        for word in arguments
    )
    for _ in range(TRIES):
        ours.append(capture_output(own, arguments, environment))
        theirs.append(capture_output(smi, arguments))
        verdict = compare_outputs(theirs, ours, is_csv)
        if not verdict.different:
            break
    return verdict


def start_load(gpus):
    work = [(0, "work"), (len(gpus) - 1, "hold"), (0, "hold")]
    started = [
        subprocess.Popen(
            [sys.executable, "-c", LOAD, str(gpu), what], stdout=subprocess.PIPE, text=True
        )
        for gpu, what in work
    ]
    for process in started:
        process.stdout.readline()
    time.sleep(3)
    return started


def start_daemon(gpumon):
    control = str(Path(tempfile.mkdtemp()) / "gpumon.sock")
    server = subprocess.Popen(
        [gpumon, "serve", "--listen", "127.0.0.1:0", "--control", control],
        stdout=subprocess.DEVNULL,
    )
    time.sleep(15)
    return server, dict(os.environ, GPUMON_CONTROL=control)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--gpumon", default="gpumon")
    parser.add_argument("--smi", default="nvidia-smi")
    parser.add_argument("--busy", action="store_true", help="run a load on all GPUs")
    parser.add_argument(
        "--daemon", action="store_true", help="run a gpumon server, which answers the queries"
    )
    parser.add_argument(
        "--fields",
        action="store_true",
        help="compare each field of --query-gpu separately, instead of whole outputs",
    )
    parser.add_argument(
        "--only", default="", help="only compare forms whose names contain this text"
    )
    parser.add_argument("--verbose", action="store_true", help="print all differences")
    arguments = parser.parse_args()
    smi, own = [arguments.smi], [shutil.which(arguments.gpumon), "smi"]
    listed = (
        capture_output(smi, ["--query-gpu=uuid,pci.bus_id,serial", "--format=csv,noheader"])[1]
        .strip()
        .splitlines()
    )
    gpus = [tuple(line.split(", ")) for line in listed]
    started = start_load(gpus) if arguments.busy else []
    environment = dict(os.environ)
    if arguments.daemon:
        server, environment = start_daemon(arguments.gpumon)
        started.append(server)
    # With an empty PATH, gpumon cannot pass command lines to NVIDIA's tool, but must process them
    # itself.
    alone = dict(environment, PATH="")
    different = 0
    try:
        if arguments.fields:
            forms, handed_over = list_field_queries(smi), []
        else:
            refusals = [(f"refused: {' '.join(map(repr, words))}", words) for words in REFUSALS]
            oddities = [(f"accepted: {' '.join(map(repr, words))}", words) for words in ODDITIES]
            forms = list_commands(smi, gpus) + refusals + oddities
            handed_over = [(f"handed over: {' '.join(words)}", words) for words in HANDED_OVER]
        forms = [(*form, alone) for form in forms] + [(*form, environment) for form in handed_over]
        forms = [form for form in forms if arguments.only in form[0]]
        for name, words, variables in forms:
            different += print_verdict(
                name, compare_command(words, (smi, own, variables)), arguments.verbose
            )
        if not arguments.only and not arguments.fields:
            different += compare_help_names(smi, own)
    finally:
        for process in started:
            process.terminate()
    print(f"\n{len(forms)} forms compared, {different} of them differ")
    sys.exit(different > 0)


def print_verdict(name, verdict, verbose):
    print(
        f"{name:<60} equal {verdict.equal:>5}  moved {verdict.moved:>4}  different "
        f"{len(verdict.different):>3}",
        flush=True,
    )
    for line in verdict.different if verbose else verdict.different[:4]:
        print(f"    {line}")
    return bool(verdict.different)


def compare_help_names(smi, own):
    """Compares the names in the help texts, because other programs parse them. The sentences of the
    help texts may differ.
    """
    different = 0
    for query in QUERIES:
        theirs, ours = list_fields(smi, query), list_fields(own, query)
        same = theirs == ours
        print(
            f"{f'--help-query-{query}, names':<60} equal {len(theirs) if same else 0:>5}  "
            f"different {0 if same else 1:>17}"
        )
        different += not same
    return different


if __name__ == "__main__":
    main()
