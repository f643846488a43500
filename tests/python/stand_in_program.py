#!/usr/bin/env python3
"""A stand-in for `gpumon measure` that fails in ways that the real program does not.

STANDIN_SAYS names a file with one fault per line: `mute` reads nothing, `die N` exits after N
lines, `garbage` answers with invalid JSON, `failed` finds no driver, `slow S` answers after S
seconds, `stubborn` continues after its input is closed. Each line that the stand-in reads is
written to the file that STANDIN_HEARD names.
"""

import json
import os
import sys
import time

#: The causes that limited the GPU.
LIMITS = {
    "shares": [{"cause": "host", "percent": 61.8}, {"cause": "tensor", "percent": 30.2}],
    "evidence": {"cpu_percent": 100.0},
    "text": "A process uses 100 % of a core while the GPU waits.",
    "advice": "Prepare data in worker processes.",
}
COST = {
    "gpu_s": 9.8,
    "peak_memory_bytes": 61 * 1024**3,
    "memory_change_bytes": 1024**3,
    "energy_joules": {"least": 6100.0, "most": 6100.0, "estimate": 6100.0},
    "shared": False,
    "limits": LIMITS,
    "gpus": [
        {
            "index": 0,
            "uuid": "GPU-0",
            "name": "NVIDIA H200",
            "held_s": 12.1,
            "gpu_s": 9.8,
            "sm_percent": {"mean": 81.0, "peak": 99.0},
            "tensor_percent": None,
            "dram_percent": None,
            "peak_memory_bytes": 61 * 1024**3,
            "memory_change_bytes": 1024**3,
            "energy_joules": {"least": 6100.0, "most": 6100.0, "estimate": 6100.0},
            "shared": False,
            "pcie_rx_bytes": None,
            "pcie_tx_bytes": None,
            "nvlink_rx_bytes": None,
            "nvlink_tx_bytes": None,
            "limits": LIMITS,
            "conditions": [
                {"kind": "throttled", "from_ms": 1, "to_ms": 2, "text": "Power-capped at 700 W"}
            ],
            "of_a_newer_program": 1,
        }
    ],
    "xids": [],
    "marks": [],
    "lost": [],
}


def read_faults() -> "dict[str, float]":
    with open(os.environ["STANDIN_SAYS"], encoding="utf-8") as file:
        words = [line.split() for line in file]
    return {name: float(more[0]) if more else 1 for name, *more in words}


def main() -> None:
    say = lambda value: print(json.dumps(value), flush=True)  # noqa: E731
    heard = open(os.environ["STANDIN_HEARD"], "a", encoding="utf-8")  # noqa: SIM115
    begun: "dict[int, dict]" = {}
    told = read_faults()
    if "failed" in told:
        say({"failed": "no NVIDIA driver: install it"})
    if "mute" in told:
        heard.write('{"is_mute": true}\n')
        heard.flush()
        time.sleep(600)
    for count, line in enumerate(sys.stdin, 1):
        heard.write(line)
        heard.flush()
        if count >= told.get("die", float("inf")):
            sys.exit("the stand-in was set to exit")
        request = json.loads(line)
        if "begin" in request:
            begun[request["begin"]] = request
        elif "end" in request:
            begun[request["end"]]["ended_ms"] = request["at_ms"]
        elif "forget" in request:
            begun.pop(request["forget"])
        elif "id" in request:
            time.sleep(told.get("slow", 0))
            if "garbage" in told:
                print("Segmentation fault", flush=True)
            elif request.get("cost") in begun:
                say({"id": request["id"], **make_cost_response(begun[request["cost"]])})
            else:
                error = "the stand-in has no such measurement; start it first"
                say({"id": request["id"], "error": error})
    if "stubborn" in told:
        time.sleep(600)


def make_cost_response(run: dict) -> dict:
    ended_ms = run.get("ended_ms", time.time() * 1000)
    duration_s = (ended_ms - run["at_ms"]) / 1000
    times = {
        "started_ms": round(run["at_ms"]),
        "ended_ms": round(ended_ms),
        "duration_s": duration_s,
    }
    cost = {"version": 1, "name": run.get("name"), **times, **COST}
    stored = {"version": 1, "duration_s": duration_s, "gpus": ["NVIDIA H200"]}
    return {"cost": cost, "stored": stored}


if __name__ == "__main__":
    main()
