#!/usr/bin/env python3
"""Checks on a real GPU that an Xid is reported once, with its process and its meaning.

    python3 tests/real-gpu/xid.py [path to gpumon]

Needs nvcc. A program that writes outside of its memory causes an Xid 31, which ends the program and
does not affect the GPU. The exit code is 1 if the Xid is not reported.
"""

import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main():
    gpumon = sys.argv[1] if len(sys.argv) > 1 else "gpumon"
    program = Path(tempfile.mkdtemp()) / "bad_pointer"
    subprocess.run(["nvcc", "-o", program, HERE / "bad_pointer.cu"], check=True)
    collector = subprocess.Popen(
        [gpumon, "collect", "--interval-ms", "500"], stdout=subprocess.PIPE, text=True
    )
    records = []
    threading.Thread(
        target=lambda: records.extend(json.loads(line) for line in collector.stdout), daemon=True
    ).start()
    time.sleep(4)
    culprit = subprocess.Popen([program], stdout=subprocess.PIPE, text=True)
    print(f"process {culprit.pid}: {culprit.communicate()[0].strip()}")
    time.sleep(5)
    collector.kill()
    told = [
        record
        for record in records
        if record["type"] == "event" and record["what"] in ("xid", "condition_began")
    ]
    for event in told:
        print(json.dumps(event))
    xids = [event for event in told if event["what"] == "xid"]
    conditions = [event for event in told if event.get("condition") == "xid"]
    conditions_last = (
        records
        and [record for record in records if record["type"] == "sample"][-1]["gpus"][0][
            "conditions"
        ]
    )
    ok = (
        len(xids) == 1
        and xids[0]["code"] == 31
        and len(conditions) == 1
        and any(c["condition"] == "xid" for c in conditions_last)
    )
    print(
        "one Xid was reported, with a condition while it lasts"
        if ok
        else f"OFF: {len(xids)} Xids, {len(conditions)} conditions"
    )
    sys.exit(not ok)


if __name__ == "__main__":
    main()
