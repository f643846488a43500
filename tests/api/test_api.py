"""Checks that the API follows its description, with valid and invalid requests from schemathesis.

One test uses the port, the other the unix socket, for requests that only the server's own user may
send. Each takes GPUMON_API_SECONDS, 25 s by default.
"""

import contextlib
import json
import os
import socket
import socketserver
import subprocess
import sys
import tempfile
import threading
import unittest
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from hooks import RULE

ROOT = Path(__file__).resolve().parents[2]
GPUMON = ROOT / "target/debug/gpumon"
SECONDS = int(os.environ.get("GPUMON_API_SECONDS", "25"))
#: The number of seconds that a test may take in addition to `SECONDS`. A busy machine needs this
#: time to start the programs, and to reduce a failing example to a minimal one.
PATIENCE_S = 300


class Relay(socketserver.BaseRequestHandler):
    """Forwards connections from a port to a unix socket."""

    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as behind:
            behind.connect(self.server.behind)
            back = threading.Thread(target=copy, args=(behind, self.request))
            back.start()
            copy(self.request, behind)
            back.join()


def copy(source: socket.socket, sink: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(65536):
            sink.sendall(chunk)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


@contextlib.contextmanager
def start_relay(behind: Path) -> Iterator[str]:
    """Yields the address of a port that forwards to a unix socket."""
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Relay) as server:
        server.behind = str(behind)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


class Api(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.control = Path(folder.name, "control.sock")
        # There is no CUDA driver at this path, so every run ends quickly.
        env = {
            **os.environ,
            "GPUMON_CONTROL": str(self.control),
            "GPUMON_LIBCUDA": str(Path(folder.name, "none")),
        }
        alerts = Path(folder.name, "alerts.toml")
        alerts.write_text(
            f'[[rule]]\nname = "{RULE}"\nfield = "temperature.gpu_celsius"\nabove = "85 C"\n'
        )
        command = [
            GPUMON,
            "--source",
            "sim:2",
            "serve",
            "--listen",
            "127.0.0.1:0",
            "--alerts",
            alerts,
        ]
        self.server = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.server.stderr.close)
        self.addCleanup(self.server.wait)
        self.addCleanup(self.server.terminate)
        self.page = self.server.stderr.readline().split()[-1].rstrip("/")
        # The rest of the output is read so that the server does not block.
        threading.Thread(target=self.server.stderr.read, daemon=True).start()

    def run_schemathesis(self, url: str, *more: str) -> None:
        command = [
            sys.executable,
            "-m",
            "schemathesis.cli",
            "run",
            f"{url}/api/v1/openapi.json",
            "--url",
            url,
        ]
        options = [
            "--phases",
            "examples,coverage,fuzzing",
            "--seed",
            "1",
            "--max-time",
            str(SECONDS),
            "--no-color",
        ]
        env = {
            **os.environ,
            "SCHEMATHESIS_HOOKS": "hooks",
            "HYPOTHESIS_STORAGE_DIRECTORY": str(self.control.parent),
        }
        ended = subprocess.run(
            [*command, *options, *more],
            cwd=Path(__file__).parent,
            env=env,
            capture_output=True,
            text=True,
            timeout=SECONDS + PATIENCE_S,
            check=False,
        )
        self.assertEqual(ended.returncode, 0, ended.stdout + ended.stderr)
        self.assertIsNone(self.server.poll(), "the server has ended")

    def test_port_matches_api_description(self) -> None:
        self.run_schemathesis(self.page)

    def test_unix_socket_matches_api_description(self) -> None:
        with urllib.request.urlopen(f"{self.page}/api/v1/openapi.json") as answer:
            paths = json.load(answer)["paths"]
        own = [
            path
            for path, methods in paths.items()
            if any("x-unix-socket-only" in each for each in methods.values())
        ]
        self.assertTrue(own)
        with start_relay(self.control) as url:
            self.run_schemathesis(url, *(word for path in own for word in ("--include-path", path)))


if __name__ == "__main__":
    unittest.main()
