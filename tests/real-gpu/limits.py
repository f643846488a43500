#!/usr/bin/env python3
"""Compares the cause that gpumon reports as the limit of a program with the known cause, on a real
GPU.

    python3 tests/real-gpu/limits.py [path to gpumon] [PROGRAM...] [--json FILE]

Needs PyTorch. Programs that need Triton, NumPy, Pillow, a disk or several GPUs are skipped without
them. The GPUs must have no other users, whose work would also count. Prints a line for each
program, and how often each cause was reported for programs of each known cause. The exit code is 1
if

- no program runs, or a program fails,
- the dominant cause of a program is wrong, or half of its windows are,
- a window of a program with `other_causes` is wrong,
- the reported wait for a slowed GPU differs by more than 25 % from the measured one,
- fewer than 90 % of all windows are right, or
- a condition with the severity `warning` or `critical` starts, because no program hangs or fails.

A window is right if its cause is right and if it names the slowed GPU with its rank, or each owner
with its cause, in programs that have them.

The programs are in `limited_programs.py`. They are not those with which the thresholds were chosen.
"""

import argparse
import collections
import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from limited_programs import BEGIN, PROGRAMS
from server import Server

# The number of seconds in which a program must start.
START_S = 25
# The number of seconds to watch a program. The first window is not used, because it can contain the
# start of the program.
WATCHED_S = 8
WINDOW_S = 1
MIN_RIGHT_SHARE = 0.9
MAX_WAIT_ERROR = 0.25
# Each of two equal owners waits for half of the time. The measured share can be lower, and need not
# be the largest one.
MIN_SHARED_PERCENT = 35

# Loads the libraries of PyTorch and CUDA from the disk, so that the programs start faster and no
# disk is busy while they run.
WARM_UP = """
import torch
matrix = torch.ones(512, 512, device="cuda", dtype=torch.bfloat16)
(matrix @ matrix).sum().item()
torch.nn.functional.conv2d(torch.ones(1, 8, 32, 32).cuda(), torch.ones(8, 8, 3, 3).cuda())
torch.cuda.synchronize()
"""


class SkipProgram(Exception):
    """The program cannot run on this machine."""


class ProgramError(Exception):
    """The program failed."""


class Running:
    """The processes of a program, which run until the `with` block ends."""

    def __init__(self, program, gpus):
        self.program, self.ranks = program, gpus if program.is_per_gpu else 1
        self.processes, self.lines = [], queue.Queue()
        # The PID of each script by name. The processes may be shells that run the scripts.
        self.pids = {}

    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.errors = Path(self.folder.name, "errors.txt")
        for name, code in self.program.scripts.items():
            script = Path(self.folder.name, f"{name}.py")
            script.write_text(BEGIN + code, encoding="utf-8")
            command = [sys.executable, script]
            if len(self.program.scripts) > 1:
                # Two owners have no common launcher other than their own shells. With `exit`, the
                # shell does not replace itself by the script.
                command = ["bash", "-c", '"$0" "$1"; exit $?', *command]
            for rank in range(self.ranks):
                self.start_process(name, command, rank)
        return self

    def start_process(self, name, command, rank):
        environment = {
            **os.environ,
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": "29872",
            "WORLD_SIZE": str(self.ranks),
            "RANK": str(rank),
        }
        with open(self.errors, "a", encoding="utf-8") as errors:
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env=environment,
                start_new_session=True,
            )
        self.processes.append(process)
        threading.Thread(target=self.read_lines, args=(name, process), daemon=True).start()

    def read_lines(self, name, process):
        for line in process.stdout:
            self.lines.put((name, line.strip()))
        self.lines.put((name, None))

    def wait_until_ready(self):
        """Waits until all scripts have printed `ready` and their PID."""
        end, missing = time.monotonic() + START_S, len(self.processes)
        while missing:
            try:
                name, line = self.lines.get(timeout=max(0.0, end - time.monotonic()))
            except queue.Empty:
                raise ProgramError(f"did not start within {START_S} s") from None
            if line is None:
                raise self.exit_error()
            if line.startswith("skip "):
                raise SkipProgram(line.removeprefix("skip "))
            if line.startswith("ready "):
                self.pids[name] = int(line.removeprefix("ready "))
                missing -= 1

    def check_running(self):
        """Raises an error if a process has exited."""
        if any(process.poll() is not None for process in self.processes):
            raise self.exit_error()

    def exit_error(self):
        """Returns an error with the last line that the processes have written to stderr."""
        lines = self.errors.read_text(encoding="utf-8", errors="replace").split("\n")
        return ProgramError(f"exited: {' '.join(lines[-2:]).strip() or 'without an error message'}")

    def mean_of_printed(self, name):
        """Returns the mean of the values that the program has printed, or `None`."""
        values = []
        while not self.lines.empty():
            _, line = self.lines.get()
            if line and line.startswith("{"):
                values.append(json.loads(line)[name])
        return sum(values) / len(values) if values else None

    def __exit__(self, *_):
        for process in self.processes:
            # The process may have exited, but not its children.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
        self.folder.cleanup()


@dataclass
class Window:
    """The limits of a GPU in one window."""

    gpu: int
    at_ms: int
    limits: dict
    #: The shares of each owner by the name of its script, the largest first.
    owners: dict
    is_right: bool


@dataclass
class Result:
    """The windows of a program, and what is wrong except for the cause."""

    windows: list
    measured_wait_ms: float | None = None
    alarms: tuple = ()

    def mean_shares(self):
        """Returns the share of each cause over all windows, in percent."""
        total_ms = sum(window.limits["window_ms"] for window in self.windows)
        shares = collections.Counter()
        for window in self.windows:
            for name, share in window.limits.items():
                # A share that the GPU does not support is an object.
                if name.endswith("_percent") and not isinstance(share, dict):
                    weight = window.limits["window_ms"] / total_ms
                    shares[name.removesuffix("_percent")] += share * weight
        return shares

    def mean_wait_ms(self):
        """Returns how long GPU 0 waits for the slowest GPU, in milliseconds of each second."""
        waits = [window.limits["evidence"].get("wait_ms", 0) for window in self.windows]
        waits = [wait for wait, window in zip(waits, self.windows) if window.gpu == 0]
        return sum(waits) / len(waits)


def find_owners(limits, pids):
    """Returns the shares of each owner by the name of its script. `pids` has the PIDs by name."""
    return {
        name: {share["cause"]: share["percent"] for share in owner["limits"]["shares"]}
        for owner in limits.get("owners", ())
        for name, pid in pids.items()
        if pid in owner["pids"]
    }


def has_owner_cause(shares, causes):
    """Returns whether the first of an owner's causes is one of `causes`."""
    is_shared = "shared" in causes and shares.get("shared", 0) >= MIN_SHARED_PERCENT
    return is_shared or next(iter(shares)) in causes


def is_window_right(program, limits, owners, gpus):
    evidence, known = limits["evidence"], program.owner_causes
    if limits["main"] not in (program.cause, *(program.other_causes or ())):
        return False
    if program.has_slow_gpu:
        # The rank of a process is also the number of its GPU.
        last = gpus - 1
        return evidence.get("slow_gpu") == last and evidence.get("slow_ranks") == [last]
    if known and (len(limits.get("owners", ())) != len(known) or owners.keys() != known.keys()):
        return False
    return all(has_owner_cause(owners[name], causes) for name, causes in known.items())


def watch_program(server, program, gpus):
    """Runs the program, and returns its result."""
    started_ms = time.time() * 1000
    watched = range(gpus - program.has_slow_gpu) if program.is_per_gpu else [0]
    windows, alarms = {}, {}
    with Running(program, gpus) as running:
        running.wait_until_ready()
        begin_ms = (time.time() + WINDOW_S) * 1000
        # Half a second more than the windows, because these do not begin at the same time.
        while time.time() * 1000 < begin_ms + (WATCHED_S + 0.5) * 1000:
            running.check_running()
            for sample in server.gpu_samples():
                index, at_ms, limits = (sample[name] for name in ("index", "at_ms", "limits"))
                alarms |= {
                    condition["condition"]: condition["text"]
                    for condition in sample["conditions"]
                    if condition["since_ms"] >= started_ms and condition["severity"] != "notice"
                }
                # A sample in which no window ends has the limits of an earlier window, with a time.
                is_new = "main" in limits and at_ms - limits["window_ms"] >= begin_ms
                if index in watched and is_new:
                    owners = find_owners(limits, running.pids)
                    is_right = is_window_right(program, limits, owners, gpus)
                    windows[index, at_ms] = Window(index, at_ms, limits, owners, is_right)
            # The server takes a sample each second.
            time.sleep(0.25)
        measured = running.mean_of_printed("wait_ms") if program.has_slow_gpu else None
    if not windows:
        raise ProgramError(f"no window has ended; the limits are {json.dumps(limits)}")
    return Result(list(windows.values()), measured, tuple(alarms.values()))


def judge_result(program, result):
    """Returns whether the result is right, and a line about it."""
    shares = result.mean_shares()
    cause, share = max(shares.items(), key=lambda item: item[1])
    wrong = [window for window in result.windows if not window.is_right]
    right = len(result.windows) - len(wrong)
    is_right = cause == program.cause and right > len(wrong) and not result.alarms
    line = (
        f"expected {program.cause}, {right} of {len(result.windows)} windows, {cause} {share:.0f} %"
    )
    if program.other_causes is not None:
        is_right &= not wrong
    if program.is_power_capped:
        is_right &= shares["power"] > 0
        line += f", power {shares['power']:.0f} %"
    if program.has_slow_gpu:
        waited, measured = result.mean_wait_ms(), result.measured_wait_ms
        is_right &= measured is not None and abs(waited - measured) <= MAX_WAIT_ERROR * measured
        line += f", waits {waited:.0f} ms of each second, measured "
        line += "nothing" if measured is None else f"{measured:.0f} ms"
    if program.owner_causes:
        for name, shares in (wrong or result.windows)[-1].owners.items():
            texts = (f"{cause} {share:.0f} %" for cause, share in shares.items())
            line += f"; {name}: {', '.join(texts)}"
    if wrong:
        limits = wrong[-1].limits
        line += f"; last wrong window on GPU {wrong[-1].gpu}: {limits['main']}: {limits['text']}"
    for alarm in result.alarms:
        line += f"; false alarm: {alarm}"
    return is_right, line


def format_matrix(results):
    """Returns how often each cause was reported for each known cause, as lines of text."""
    counts = collections.Counter(
        (PROGRAMS[name].cause, window.limits["main"])
        for name, result in results.items()
        for window in result.windows
    )
    known = sorted({cause for cause, _ in counts})
    reported = sorted({cause for _, cause in counts})
    width = max(len(cause) for cause in [*known, *reported, "known"]) + 2
    yield "known".ljust(width) + "".join(cause.rjust(width) for cause in reported)
    for cause in known:
        numbers = (str(counts[cause, other] or "-").rjust(width) for other in reported)
        yield cause.ljust(width) + "".join(numbers)


def write_windows(path, results):
    windows = [
        {"program": name, "known": PROGRAMS[name].cause, **vars(window)}
        for name, result in results.items()
        for window in result.windows
    ]
    Path(path).write_text(json.dumps(windows, indent=1), encoding="utf-8")


def check_programs(server, names):
    """Runs the programs. Returns the results by name, and the number of wrong programs."""
    results, wrong, gpus = {}, 0, len(server.gpu_samples())
    for name in names:
        program = PROGRAMS[name]
        try:
            if program.is_per_gpu and gpus < 2:
                raise SkipProgram("needs two GPUs")
            results[name] = watch_program(server, program, gpus)
            is_right, line = judge_result(program, results[name])
        except SkipProgram as reason:
            print(f"  skip  {name}: {reason}", flush=True)
            continue
        except ProgramError as error:
            is_right, line = False, str(error)
        print(f"  {'ok   ' if is_right else 'WRONG'} {name}: {line}", flush=True)
        wrong += not is_right
    return results, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("gpumon", nargs="?", default="gpumon")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    parser.add_argument("--json", metavar="FILE", help="write all windows to this file")
    arguments = parser.parse_args()
    if unknown := set(arguments.programs) - set(PROGRAMS):
        parser.error(f"unknown programs: {', '.join(sorted(unknown))}")
    begun = time.monotonic()
    if subprocess.run([sys.executable, "-c", WARM_UP], check=False).returncode:
        sys.exit("PyTorch cannot use the GPU")
    with Server(arguments.gpumon) as server:
        results, wrong = check_programs(server, arguments.programs or PROGRAMS)
    if not results:
        sys.exit("no program has run: all were skipped or failed")
    windows = [window for result in results.values() for window in result.windows]
    right = sum(window.is_right for window in windows)
    share = right / len(windows)
    print(*format_matrix(results), sep="\n")
    print(f"{right} of {len(windows)} windows are right ({share:.1%})", end="")
    print(f", {time.monotonic() - begun:.0f} s")
    if arguments.json:
        write_windows(arguments.json, results)
    return 1 if wrong or share < MIN_RIGHT_SHARE else 0


if __name__ == "__main__":
    sys.exit(main())
