#!/usr/bin/env python3
"""Checks on a real GPU that hangs are suspected within three minutes, and that working and waiting
programs are not suspected.

    python3 tests/real-gpu/hang.py [path to gpumon] [SCENARIO...]

Needs PyTorch. The scenario `collective` needs two GPUs and is skipped with one. The GPUs must have
no other users, whose work would also count. Prints a line for each scenario. The exit code is 1 if
a result is wrong.
"""

import ctypes
import os
import subprocess
import sys
import time

from server import Server

NAMED_WITHIN_S = 180
# The number of seconds to watch the program. This is longer than it takes until a hang is
# suspected.
WATCHED_S = 135
PTRACE_SEIZE = 0x4206

BEGIN = """
import os, sys, time
import torch
import torch.distributed as dist
rank = int(os.environ.get("RANK", "0"))
torch.cuda.set_device(rank)
def ready():
    torch.cuda.synchronize()
    print("ready", flush=True)
"""

# A kernel that waits for years.
SPIN = """
ready()
torch.cuda._sleep(1 << 61)
time.sleep(10000)
"""

# Rank 1 has joined the group and never takes part in a reduction.
COLLECTIVE = """
dist.init_process_group("nccl", device_id=torch.device("cuda", rank))
sums = torch.ones(64 << 20, device="cuda")
dist.all_reduce(sums)
ready()
if rank == 0:
    dist.all_reduce(sums)
    torch.cuda.synchronize()
time.sleep(10000)
"""

# Training with an evaluation and a checkpoint, during which the GPU is idle for a while.
TRAINING = """
layers = [part for _ in range(8) for part in (torch.nn.Linear(4096, 4096), torch.nn.GELU())]
model = torch.nn.Sequential(*layers).cuda().bfloat16()
optimizer = torch.optim.AdamW(model.parameters())
ready()
end = time.time()
for step in range(1 << 40):
    data = torch.randn(2048, 4096, device="cuda", dtype=torch.bfloat16)
    loss = (model(data) - data).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    if step % 3000 == 2999:
        torch.cuda.synchronize()
        time.sleep(8)
"""

# Inference of one token after the other in a CUDA graph: small kernels without a pause, at low
# power.
INFERENCE = """
model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(24)]).cuda().bfloat16()
token = torch.randn(1, 2048, device="cuda", dtype=torch.bfloat16)
with torch.no_grad():
    model(token)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        model(token)
ready()
while True:
    begun = time.time()
    while time.time() - begun < 20:
        for _ in range(200):
            graph.replay()
        torch.cuda.synchronize()
    time.sleep(1)
"""

IDLE = """
held = torch.zeros(1 << 30, device="cuda", dtype=torch.uint8)
ready()
time.sleep(10000)
"""


def start_ranks(code, ranks=1):
    environment = {
        **os.environ,
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29871",
        "WORLD_SIZE": str(ranks),
    }
    command = [sys.executable, "-c", BEGIN + code]
    running = [
        subprocess.Popen(
            command, stdout=subprocess.PIPE, text=True, env={**environment, "RANK": str(rank)}
        )
        for rank in range(ranks)
    ]
    for process in running:
        if process.stdout.readline() != "ready\n":
            sys.exit("the load did not start")
    return running


def trace_process(process):
    """Traces the main thread of the process, like a debugger. The other threads are not traced,
    because the tracer would have to wait for the end of each of them.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(PTRACE_SEIZE, process.pid, None, None):
        sys.exit(f"the load cannot be traced: {os.strerror(ctypes.get_errno())}")


def suspected_hangs(server):
    """Returns the suspected hangs by GPU."""
    found = (
        (gpu["index"], condition) for gpu in server.gpu_samples() for condition in gpu["conditions"]
    )
    return {
        index: condition for index, condition in found if condition["condition"] == "suspected_hang"
    }


def wait_for_suspected_hangs(server, seconds, until_found):
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        found = suspected_hangs(server)
        if found and until_found:
            return time.monotonic() - begun, found
        if found:
            return None, found
        time.sleep(0.5)
    return None, {}


def check_hang(gpumon, code, ranks=1):
    """Checks that the hanging GPU is named, with its process."""
    with Server(gpumon) as server:
        # gpumon first learns the power of the idle GPU.
        time.sleep(5)
        running = start_ranks(code, ranks)
        seconds, found = wait_for_suspected_hangs(server, NAMED_WITHIN_S, until_found=True)
        pids = {process.pid for process in running}
        end_processes(running)
    if seconds is None:
        return False, f"not reported within {NAMED_WITHIN_S} s"
    condition = found.get(0, {})
    is_right = list(found) == [0] and condition["pids"] == [running[0].pid]
    if ranks > 1:
        differing = [(other["gpu"], other["pid"]) for other in condition["differing"]]
        is_right &= differing == [(1, running[1].pid)] and pids >= set(condition["pids"])
    return is_right, f"reported after {seconds:.0f} s: {condition.get('text')}"


def check_no_hang(gpumon, code, debugged=False):
    with Server(gpumon) as server:
        time.sleep(5)
        running = start_ranks(code)
        if debugged:
            trace_process(running[0])
        _, found = wait_for_suspected_hangs(server, WATCHED_S, until_found=False)
        last = server.gpu_samples()[0]
        end_processes(running)
    utilization, power = (
        reading_value(last[group][name])
        for group, name in [("utilization", "gpu_percent"), ("power", "draw_watts")]
    )
    said = "; ".join(condition["text"] for condition in found.values()) or "no hang reported"
    return not found, f"{said} in {WATCHED_S} s (at the end {utilization} %, {power} W)"


def reading_value(reading):
    return reading.get("value") if isinstance(reading, dict) else reading


def end_processes(running):
    for process in running:
        process.kill()
        process.wait()


SCENARIOS = {
    "spin": lambda gpumon: check_hang(gpumon, SPIN),
    "collective": lambda gpumon: check_hang(gpumon, COLLECTIVE, ranks=2),
    "debugger": lambda gpumon: check_no_hang(gpumon, SPIN, debugged=True),
    "training": lambda gpumon: check_no_hang(gpumon, TRAINING),
    "inference": lambda gpumon: check_no_hang(gpumon, INFERENCE),
    "idle": lambda gpumon: check_no_hang(gpumon, IDLE),
}


def count_gpus():
    listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True).stdout
    return sum(line.startswith("GPU ") for line in listed.splitlines())


def main():
    gpumon, *names = sys.argv[1:] or ["gpumon"]
    wrong = 0
    for name in names or SCENARIOS:
        if name == "collective" and count_gpus() < 2:
            print("  skip  collective: needs two GPUs", flush=True)
            continue
        is_right, said = SCENARIOS[name](gpumon)
        print(f"  {'ok   ' if is_right else 'WRONG'} {name}: {said}", flush=True)
        wrong += not is_right
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
