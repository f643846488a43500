"""A `gpumon serve` that runs next to a load, and its answers."""

import json
import subprocess
import time
import urllib.request

PORT = 19321


class Server:
    """A server that runs until the `with` block ends."""

    def __init__(self, gpumon, *arguments):
        self.command = [
            gpumon,
            "serve",
            "--no-control",
            "--listen",
            f"127.0.0.1:{PORT}",
            *arguments,
        ]

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stderr=subprocess.DEVNULL)
        while True:
            try:
                self.get("/readyz")
                return self
            except OSError:
                if self.process.poll() is not None:
                    raise SystemExit(
                        f"{' '.join(self.command)} exited with code {self.process.returncode}"
                    ) from None
                time.sleep(0.1)

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()

    def get(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{PORT}{path}", timeout=10) as answer:
            body = answer.read()
        return json.loads(body) if path.startswith("/api/") else body

    def gpu_samples(self):
        """Returns the latest sample of each GPU."""
        return self.get("/api/v1/snapshot")["sample"]["gpus"]
