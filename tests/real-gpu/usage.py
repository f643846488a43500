#!/usr/bin/env python3
"""Checks gpumon's energy by owner on a real GPU.

    python3 tests/real-gpu/usage.py [path to gpumon]

Needs PyTorch, and root, because the owners are two users. First, each owner uses the GPU alone: the
owner's energy must be within 3 % of the board's counter, because the seconds at the start and end
are inexact. Then both owners have a context and work in turns, so that the counter shows the energy
of each. This energy must be in the range that gpumon reports for the owner. The exit code is 1 if
anything is wrong.
"""

import ctypes
import os
import subprocess
import sys
import time

from server import Server

ALONE_S = 40
TURNS = 10
TURN_S = 4
#: The owners, as user IDs without names.
USERS = {"products": 64001, "copies": 64002}
TOLERANCE = 0.03

LOAD = """
import sys, torch
work = sys.argv[1]
print("loaded", flush=True)
sys.stdin.readline()
torch.cuda.init()
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
b = torch.empty_like(a)
def step():
    if work == "products":
        torch.matmul(a, a, out=b)
    else:
        b.copy_(a)
step()
torch.cuda.synchronize()
import time
print("ready", flush=True)
for line in sys.stdin:
    end = time.time() + float(line)
    while time.time() < end:
        for _ in range(20):
            step()
        torch.cuda.synchronize()
    print("done", flush=True)
"""


class Counter:
    """The board's energy counter, read from NVML directly."""

    def __init__(self):
        self.nvml = ctypes.CDLL("libnvidia-ml.so.1")
        self.device = ctypes.c_void_p()
        self.call_nvml("nvmlInit_v2")
        self.call_nvml("nvmlDeviceGetHandleByIndex_v2", 0, ctypes.byref(self.device))

    def call_nvml(self, name, *arguments):
        if code := getattr(self.nvml, name)(*arguments):
            sys.exit(f"{name}: error {code}")

    def read_joules(self):
        # The counter changes ten times a second.
        millijoules = ctypes.c_ulonglong()
        self.call_nvml(
            "nvmlDeviceGetTotalEnergyConsumption", self.device, ctypes.byref(millijoules)
        )
        return millijoules.value / 1000


class Load:
    """A process of another user that has a context on the GPU and works on request. The time to
    load PyTorch is not counted.
    """

    def __init__(self, work):
        self.process = subprocess.Popen(
            [sys.executable, "-c", LOAD, work],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            user=USERS[work],
            group=USERS[work],
            env={**os.environ, "HOME": "/tmp"},
            cwd="/tmp",
        )
        self.wait_for_word("loaded")

    def create_context(self):
        """Creates a context on the GPU."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        self.wait_for_word("ready")

    def wait_for_word(self, word):
        if self.process.stdout.readline().strip() != word:
            sys.exit("the load failed")

    def run_work(self, seconds):
        self.process.stdin.write(f"{seconds}\n")
        self.process.stdin.flush()
        self.wait_for_word("done")

    def end(self):
        self.process.kill()
        self.process.wait()


def owners_by_user(server):
    """Returns the owners by user. The list may contain other owners than the loads."""
    return {owner["user"]: owner for owner in server.get("/api/v1/usage")["owners"]}


def find_owner(server, work):
    # The user has no name, so the server lists the user ID instead.
    return owners_by_user(server)[str(USERS[work])]


def check_alone(gpumon, counter, work):
    with Server(gpumon) as server:
        time.sleep(3)
        load = Load(work)
        before = counter.read_joules()
        load.create_context()
        load.run_work(ALONE_S)
        load.end()
        used = counter.read_joules() - before
        # gpumon must read the energy counter once more after the work.
        time.sleep(12)
        told = find_owner(server, work)["joules"]
    off = told["estimate"] / used - 1
    return (
        abs(off) <= TOLERANCE,
        f"{told['estimate']:.0f} J ({told['least']:.0f} to {told['most']:.0f}), counter "
        f"{used:.0f} J: {100 * off:+.2f} %",
    )


def check_shared(gpumon, counter):
    with Server(gpumon) as server:
        loads = {work: Load(work) for work in USERS}
        for load in loads.values():
            load.create_context()
        # The server must list both owners before they work.
        time.sleep(3)
        begun, used = owners_by_user(server), dict.fromkeys(USERS, 0.0)
        for _ in range(TURNS):
            for work, load in loads.items():
                before = counter.read_joules()
                load.run_work(TURN_S)
                used[work] += counter.read_joules() - before
        time.sleep(12)
        ended = owners_by_user(server)
        for load in loads.values():
            load.end()
    for work, user in USERS.items():
        told = {
            bound: ended[str(user)]["joules"][bound]
            - ((begun.get(str(user)) or {}).get("joules") or {}).get(bound, 0)
            for bound in ("least", "estimate", "most")
        }
        is_right = told["least"] <= used[work] <= told["most"]
        off = 100 * (told["estimate"] / used[work] - 1)
        yield (
            is_right,
            f"{told['least']:.0f} to {told['most']:.0f} J, counter {used[work]:.0f} J; estimate "
            f"{told['estimate']:.0f} J ({off:+.1f} %)",
        )


def main():
    gpumon = sys.argv[1] if len(sys.argv) > 1 else "gpumon"
    counter = Counter()
    results = [(f"{work} alone", *check_alone(gpumon, counter, work)) for work in USERS]
    results += [
        (f"{work} in turns", *result) for work, result in zip(USERS, check_shared(gpumon, counter))
    ]
    for name, is_right, said in results:
        print(f"  {'ok   ' if is_right else 'WRONG'} {name}: {said}", flush=True)
    return 0 if all(is_right for _, is_right, _ in results) else 1


if __name__ == "__main__":
    sys.exit(main())
