"""A proxy that simulates many faults in front of a real Prometheus. That Prometheus scrapes nodes
with hostile names and labels.

    python3 tests/bench/fleet/faults.py --folder /tmp/faults [--prometheus http://127.0.0.1:9790]

Starts a Prometheus of its own that scrapes the hostile nodes, unless --prometheus gives the address
of another one. The proxy answers at http://127.0.0.1:29791/FAULT, where FAULT is a name in FAULTS.
Request http://127.0.0.1:29791/begin to activate the faults, and /end to deactivate them. Check the
page, `gpumon fleet --table` and `gpumon top --fleet` with each fault: they must show the error and
its remedy, and the last known values in gray. Hidden pages send no requests.
"""

from __future__ import annotations

import argparse
import json
import socket
import struct
import subprocess
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

DOOR, NODES, PROMETHEUS = 29791, 29792, 29793

#: Names of nodes. Prometheus' `instance` can be any text.
INSTANCES = [
    "plain:9123",
    "<script>document.title='owned'</script>:9123",
    "<img src=x onerror=\"document.title='owned'\">",
    "quo\"te's\\back`tick:9123",
    "new\nline\ttab\x1b[31mred\x1b[0m:9123",
    "\u202egnp.exe\u202c:9123",
    "\u05d0\u05d1\u05d2-\u0645\u0631\u062d\u0628\u0627:9123",
    "",
    "..",
    "../../api/v1/snapshot",
    "a/b?c=d#e%2f:9123",
    "node{x}:9123",
    "-option:9123",
    "x" * 5000,
    "m" * 1_000_000,
    "twice:9123",
    "twice:9124",
    "[2001:db8::1]:9123",
    "__proto__:9123",
    "constructor:9123",
]
MARKUP = "<b onmouseover=document.title='owned'>bob</b>"
USERS = ["ana", MARKUP, 'e"v\\il', "\u202eabc", "a\nb", "z" * 200_000, "__proto__", "", "🦀" * 40]


def escape_label(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def node_metrics(number: int) -> str:
    """Returns the metrics of a node with two GPUs, whose owners and model are hostile, too."""
    lines = ['gpumon_collector_state{state="running"} 1', "gpumon_sample_age_seconds 1"]
    lines.append("gpumon_unheld_gpu_seconds_total 5")
    user = escape_label(USERS[number % len(USERS)])
    for gpu in ("0", "1"):
        ids = f'gpu="{gpu}",uuid="GPU-{number}-{gpu}"'
        lines += [
            f'gpumon_gpu_info{{{ids},name="'
            f'{escape_label("NVIDIA <i>" + USERS[(number + 1) % len(USERS)][:300])}"}} 1',
            f"gpumon_gpu_up{{{ids}}} 1",
            f"gpumon_gpu_utilization_ratio{{{ids}}} "
            f"{['0.5', 'NaN', '+Inf', '-3', '1e300'][number % 5]}",
            f"gpumon_gpu_memory_used_bytes{{{ids}}} {40 << 30}",
            f"gpumon_gpu_memory_total_bytes{{{ids}}} {141 << 30}",
            f"gpumon_gpu_power_watts{{{ids}}} 345.6",
            f"gpumon_gpu_power_limit_watts{{{ids}}} 700",
            f"gpumon_gpu_temperature_celsius{{{ids}}} 55",
            f"gpumon_gpu_processes{{{ids}}} 1",
            f'gpumon_gpu_job_info{{{ids},user="{user}",slurm_job="{number}"}} 1',
            f'gpumon_condition_severity{{{ids},condition="{user}"}} {2 + number % 4}',
            f'gpumon_gpu_xid_errors_total{{{ids},code="{["79", "9" * 30, "<u>"][number % 3]}"}} 3',
            f'gpumon_gpu_xid{{{ids},code="79"}} 1',
        ]
    lines.append(
        f'gpumon_owner_gpu_seconds_total{{user="{user}",slurm_job="{number}"}} '
        f"{time.time() % 1e5:.0f}"
    )
    # These GPU indices are invalid.
    for gpu in ("-1", "99999999999", "<b>", ""):
        lines.append(f'gpumon_gpu_up{{gpu="{gpu}",uuid="u{gpu}"}} 1')
    return "\n".join(lines) + "\n"


class Node(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        body = node_metrics(int(self.path.split("/")[1])).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_) -> None:
        pass


class FaultyPrometheus(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    upstream = ""
    #: Whether the faults are active.
    wrong = False
    met = 0

    def do_GET(self) -> None:
        if self.path in ("/begin", "/end"):
            FaultyPrometheus.wrong = self.path == "/begin"
            return self.reply(200, b"", "text/plain")
        _, fault, self.path = self.path.split("/", 2)
        self.path = f"/{self.path}"
        FaultyPrometheus.met += 1
        (FAULTS[fault] if FaultyPrometheus.wrong else FaultyPrometheus.forward_response)(self)

    def reply(
        self,
        status: int,
        body: bytes,
        kind="application/json",
        length: int | None = None,
        **headers: str,
    ) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def request_prometheus(self) -> tuple[int, bytes]:
        try:
            with urllib.request.urlopen(self.upstream + self.path, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    def forward_response(self) -> None:
        self.reply(*self.request_prometheus())

    def respond_late(self) -> None:
        time.sleep(30)
        self.forward_response()

    def send_bytes_slowly(self) -> None:
        """Sends one byte per second, so that no single read times out."""
        self.reply(200, b"", length=1000)
        for _ in range(100):
            self.wfile.write(b" ")
            self.wfile.flush()
            time.sleep(1)

    def reset_connection(self) -> None:
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True
        self.connection.close()

    def send_truncated_response(self) -> None:
        """Announces a complete answer, but closes the connection after half of it."""
        _, body = self.request_prometheus()
        self.reply(200, body[: len(body) // 2], length=len(body))
        self.close_connection = True

    def send_truncated_json(self) -> None:
        _, body = self.request_prometheus()
        self.reply(200, body[: len(body) // 2])

    def html(self) -> None:
        self.reply(
            200, b"<html><script>document.title='owned'</script>Please sign in</html>", "text/html"
        )

    def unauthorized(self) -> None:
        self.reply(
            401, b"Unauthorized <script>alert(1)</script>\n", "text/plain", WWW_Authenticate="Basic"
        )

    def unprocessable(self) -> None:
        text = (
            "query processing would load too many samples into memory <script>alert(1)</script>"
            + "x" * 5000
        )
        self.reply(
            422, json.dumps({"status": "error", "errorType": "execution", "error": text}).encode()
        )

    def unavailable(self) -> None:
        self.reply(503, b"<html>503 from a proxy</html>", "text/html")

    def send_redirect(self) -> None:
        self.reply(302, b"", Location="https://evil.example/login?user=a:secret@b")

    def send_huge_response(self) -> None:
        """Sends 200 MB of an answer that looks valid."""
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.end_headers()
        self.close_connection = True
        row = b'{"metric":{"gpu":"0","instance":"n1","x":"' + b"y" * 8000 + b'"},"value":[1,"1"]},'
        try:
            self.wfile.write(b'{"status":"success","data":{"resultType":"vector","result":[')
            for _ in range(25_000):
                self.wfile.write(row)
        except OSError:
            pass

    def send_deeply_nested_json(self) -> None:
        self.reply(
            200, b'{"status":"success","data":{"resultType":"vector","result":' + b"[" * 1_000_000
        )

    def send_unexpected_json(self) -> None:
        """Sends JSON that is not in Prometheus' format."""
        self.reply(200, b'{"status":"success","data":{"resultType":"string","result":[1,"x"]}}')

    def add_warnings(self) -> None:
        """Adds warnings, as Thanos does when a store does not answer."""
        status, body = self.request_prometheus()
        answer = json.loads(body)
        warning = (
            "No StoreAPIs matched for this query: <script>alert(1)</script> rpc error: code = "
            "Unavailable"
        )
        answer["warnings"] = [warning, "x" * 3000] * 30
        self.reply(status, json.dumps(answer).encode())

    def fail_every_third_query(self) -> None:
        """Fails every third query."""
        (
            FaultyPrometheus.unprocessable
            if FaultyPrometheus.met % 3 == 0
            else FaultyPrometheus.forward_response
        )(self)

    def send_empty_result(self) -> None:
        """Sends an empty result."""
        self.reply(200, b'{"status":"success","data":{"resultType":"vector","result":[]}}')

    def log_message(self, *_) -> None:
        pass


FAULTS = {
    "none": FaultyPrometheus.forward_response,
    "slow": FaultyPrometheus.respond_late,
    "trickles": FaultyPrometheus.send_bytes_slowly,
    "resets": FaultyPrometheus.reset_connection,
    "half": FaultyPrometheus.send_truncated_response,
    "half_json": FaultyPrometheus.send_truncated_json,
    "html": FaultyPrometheus.html,
    "unauthorized": FaultyPrometheus.unauthorized,
    "unprocessable": FaultyPrometheus.unprocessable,
    "unavailable": FaultyPrometheus.unavailable,
    "redirects": FaultyPrometheus.send_redirect,
    "huge": FaultyPrometheus.send_huge_response,
    "deep": FaultyPrometheus.send_deeply_nested_json,
    "odd": FaultyPrometheus.send_unexpected_json,
    "warns": FaultyPrometheus.add_warnings,
    "some": FaultyPrometheus.fail_every_third_query,
    "empties": FaultyPrometheus.send_empty_result,
}


def make_target(number: int, instance: str) -> dict:
    labels = {"instance": instance, "__metrics_path__": f"/{number}/metrics"}
    return {"targets": [f"127.0.0.1:{NODES}"], "labels": labels}


def start_prometheus(folder: Path) -> subprocess.Popen:
    """Starts a Prometheus that scrapes the hostile nodes. It scrapes two of them a second time, as
    part of another job.
    """
    targets = [make_target(number, instance) for number, instance in enumerate(INSTANCES)]
    twice = [*targets[:2], {"targets": ["127.0.0.1:1"], "labels": {"instance": "<b>down</b>:1"}}]
    jobs = {"gpumon": targets, 'gpumon-again"}) or vector(1) #<script>': twice}
    configuration = {
        "global": {"scrape_interval": "5s", "scrape_timeout": "5s"},
        "scrape_configs": [{"job_name": job, "static_configs": of} for job, of in jobs.items()],
    }
    (folder / "prometheus.yml").write_text(json.dumps(configuration))
    command = [
        "prometheus",
        f"--config.file={folder}/prometheus.yml",
        f"--storage.tsdb.path={folder}/data",
    ]
    command.append("--log.level=warn")
    return subprocess.Popen([*command, f"--web.listen-address=127.0.0.1:{PROMETHEUS}"])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--prometheus", help="address of a Prometheus to use instead")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    FaultyPrometheus.upstream = given.prometheus or f"http://127.0.0.1:{PROMETHEUS}"
    server = None
    try:
        if not given.prometheus:
            nodes = ThreadingHTTPServer(("127.0.0.1", NODES), Node)
            threading.Thread(target=nodes.serve_forever, daemon=True).start()
            server = start_prometheus(given.folder)
        print(f"http://127.0.0.1:{DOOR}; faults: {' '.join(FAULTS)}", flush=True)
        ThreadingHTTPServer(("127.0.0.1", DOOR), FaultyPrometheus).serve_forever()
    finally:
        if server:
            server.kill()


if __name__ == "__main__":
    main()
