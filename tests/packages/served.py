"""Waits until a server has started, and checks that its snapshot has GPUs and that it serves the
page.
"""

import json
import sys
import time
import urllib.request

until = time.monotonic() + 30
while True:
    try:
        with urllib.request.urlopen(f"{sys.argv[1]}/api/v1/snapshot", timeout=60) as answer:
            snapshot = json.load(answer)
        if (snapshot.get("sample") or {}).get("gpus"):
            break
        problem = "the snapshot has no GPUs"
    except OSError as error:
        problem = str(error)
    if time.monotonic() > until:
        sys.exit(f"the server did not send a valid snapshot within 30 s: {problem}")
    time.sleep(0.2)
with urllib.request.urlopen(f"{sys.argv[1]}/", timeout=60) as answer:
    if b"<html" not in answer.read():
        sys.exit("the server does not serve the page")
