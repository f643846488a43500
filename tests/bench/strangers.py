#!/usr/bin/env python3
"""Measures how idle connections and token guesses from other machines slow down other users.

    python3 tests/bench/strangers.py [--program target/release/gpumon] [--seconds 60]

The other machines are simulated by a network namespace with a pair of virtual interfaces, so the
script needs root and `ip`. With nginx installed, guesses also arrive through a reverse proxy.
"""

import argparse
import contextlib
import http.client
import os
import shutil
import signal
import ssl
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from machine import GPUMON
from measure import status_kb
from report import missed, print_row

#: Addresses from the range that RFC 2544 reserves for tests. They exist only in the two namespaces.
SERVER, STRANGER = "198.18.0.1", "198.18.0.2"
PORT = 9123
PROXY = 8443
#: Seconds that a client waits for an answer.
TIMEOUT = 30
TOKEN = "0123456789abcdef" * 4
#: A program that opens TCP connections at a rate and sends nothing. Its arguments are ADDRESS PORT
#: COUNT PER_SECOND; with a rate of 0, it opens them as fast as possible.
FLOOD = """
import socket, sys, time
address, port, count, rate = sys.argv[1], *map(int, sys.argv[2:])
held, begun = [], time.monotonic()
for number in range(count):
    connection = socket.socket()
    connection.settimeout(60)
    connection.connect((address, port))
    held.append(connection)
    if rate:
        time.sleep(max(0, begun + (number + 1) / rate - time.monotonic()))
print(f"{time.monotonic() - begun:.2f}", flush=True)
time.sleep(5)
"""
NGINX = """
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 512; }}
http {{
    access_log off;
    server {{
        listen {server}:{proxy} ssl;
        ssl_certificate {folder}/server.crt;
        ssl_certificate_key {folder}/server.key;
        location / {{
            proxy_pass https://{server}:{port};
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
        }}
    }}
}}
"""


class Network:
    """Two network namespaces: one for the server, and one for the clients on simulated other
    machines.
    """

    def __init__(self):
        self.names = [f"gpumon-{who}-{os.getpid()}" for who in ("server", "stranger")]

    def __enter__(self):
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        ends = [f"gm{os.getpid() % 100000}{end}" for end in "ab"]
        run("ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1])
        for name, end, address in zip(self.names, ends, (SERVER, STRANGER)):
            run("ip", "link", "set", end, "netns", name)
            run("ip", "-n", name, "addr", "add", f"{address}/24", "dev", end)
            run("ip", "-n", name, "link", "set", end, "up")
        return self

    def __exit__(self, *_):
        for name in self.names:
            subprocess.run(["ip", "netns", "del", name], check=False)

    def namespace_command(self, who):
        return ["ip", "netns", "exec", self.names[who]]


def run(*command):
    subprocess.run(command, check=True)


class Site:
    """A server that accepts connections from other machines. It uses TLS and requires a token."""

    def __init__(self, program, network, *more):
        self.folder = tempfile.TemporaryDirectory()
        path = Path(self.folder.name)
        subject = f"subjectAltName=IP:{SERVER}"
        new = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:prime256v1",
            "-nodes",
        ]
        keys = ["-keyout", path / "server.key", "-out", path / "server.crt"]
        subprocess.run(
            [*new, *keys, "-subj", "/CN=gpumon", "-addext", subject],
            check=True,
            capture_output=True,
        )
        write_secret(
            path / "web.yml",
            "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n",
        )
        write_secret(path / "tokens", f"read scraper {TOKEN}\n")
        options = ["--web-config", path / "web.yml", "--token-file", path / "tokens", *more]
        listen = ["--listen", f"{SERVER}:{PORT}"]
        command = [
            *network.namespace_command(0),
            program,
            "--source",
            "sim:2",
            "serve",
            "--no-control",
            *listen,
            *options,
        ]
        self.log = open(path / "log", "w")
        self.process = subprocess.Popen(command, stderr=self.log, stdout=self.log)
        self.network = network

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()
        self.log.close()
        self.folder.cleanup()

    def cpu_seconds(self):
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def write_secret(path, text):
    path.touch(0o600)
    path.write_text(text)


class Client:
    """A client in a namespace that sends requests in a loop, each on a new connection."""

    def __init__(self, network, who, address, port, token, pause):
        script = (
            f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import strangers; "
            f"strangers.send_requests_until_terminated()"
        )
        words = [address, str(port), token, str(pause)]
        command = [*network.namespace_command(who), sys.executable, "-c", script, *words]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    def read_results(self):
        """Returns pairs of a status (0 for no answer) and milliseconds."""
        self.process.send_signal(signal.SIGTERM)
        lines = self.process.communicate()[0].splitlines()
        return [(int(status), float(ms)) for status, ms in (line.split() for line in lines)]


def send_requests_until_terminated():
    """Sends requests in a loop. This is the main function of a `Client` process."""
    address, port, token, pause = sys.argv[1], int(sys.argv[2]), sys.argv[3], float(sys.argv[4])
    context = ssl._create_unverified_context()
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    number = 0
    while not done.is_set():
        number += 1
        begun = time.perf_counter()
        status = 0
        with contextlib.suppress(OSError, http.client.HTTPException):
            connection = http.client.HTTPSConnection(
                address, port, timeout=TIMEOUT, context=context
            )
            shown = token if token != "guess" else f"{number:064}"
            connection.request("GET", "/metrics", headers={"Authorization": f"Bearer {shown}"})
            answer = connection.getresponse()
            answer.read()
            status = answer.status
            connection.close()
        took = time.perf_counter() - begun
        print(status, f"{took * 1000:.2f}", flush=True)
        done.wait(max(0, pause - took))


def wait_until_served(network, site):
    client = Client(network, 1, SERVER, PORT, TOKEN, 0.1)
    end = time.monotonic() + 60
    while not client.process.stdout.readline().startswith("200 "):
        if time.monotonic() > end:
            sys.exit("the server does not answer: " + (Path(site.folder.name) / "log").read_text())
    client.read_results()


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(len(values) * share))]


def idle(program, seconds):
    for what, count, rate in (
        ("3,000 idle connections at once", 3000, 0),
        (f"150 idle connections a second for {seconds} s", 150 * seconds, 150),
    ):
        with Network() as network, Site(program, network) as site:
            wait_until_served(network, site)
            before, begun = site.cpu_seconds(), time.monotonic()
            took = open_idle_connections(network, count, rate)
            percent = 100 * (site.cpu_seconds() - before) / (time.monotonic() - begun)
            print_row(what, "", f"accepted within {took:.1f} s", None)
            print_row("  CPU of serve", "<= 5 % of a core", f"{percent:.1f} %", percent <= 5)
            print_row(
                "  RSS of serve", "", f"{status_kb(site.process.pid, 'VmRSS') / 1000:.1f} MB", None
            )
        with Network() as network, Site(program, network) as site:
            wait_until_served(network, site)
            quiet = request_times_during(network, lambda: time.sleep(10))
            busy = request_times_during(
                network, lambda: open_idle_connections(network, count, rate)
            )
            p50, p99 = statistics.median(busy), percentile(busy, 0.99)
            without = f"without {statistics.median(quiet):.1f}, {percentile(quiet, 0.99):.1f}"
            print_row(
                "  requests of others, p50, p99",
                "p99 <= 20 ms",
                f"{p50:.1f}, {p99:.1f} ms ({without})",
                p99 <= 20,
            )


def open_idle_connections(network, count, rate):
    """Opens idle connections from another machine. Returns the seconds until all are accepted."""
    command = [
        *network.namespace_command(1),
        sys.executable,
        "-c",
        FLOOD,
        SERVER,
        str(PORT),
        str(count),
        str(rate),
    ]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout)


def request_times_during(network, work):
    """Returns how long each request of a normal client takes while `work` runs, in milliseconds. A
    failed request counts as `TIMEOUT`.
    """
    client = Client(network, 1, SERVER, PORT, TOKEN, 0.05)
    time.sleep(1)
    work()
    return [ms if status == 200 else TIMEOUT * 1000 for status, ms in client.read_results()]


def guesses(program, seconds):
    ways = [("direct", PORT)] + ([("behind nginx", PROXY)] if shutil.which("nginx") else [])
    for way, port in ways:
        more = ["--public-origin", f"https://{SERVER}:{PROXY}"] if port == PROXY else []
        with (
            Network() as network,
            Site(program, network, *more) as site,
            contextlib.ExitStack() as stack,
        ):
            wait_until_served(network, site)
            if port == PROXY:
                configuration = Path(site.folder.name) / "nginx.conf"
                configuration.write_text(
                    NGINX.format(folder=site.folder.name, server=SERVER, proxy=PROXY, port=PORT)
                )
                nginx = subprocess.Popen(
                    [
                        *network.namespace_command(0),
                        "nginx",
                        "-c",
                        configuration,
                        "-g",
                        "daemon off; user root;",
                    ]
                )
                stack.callback(nginx.wait)
                stack.callback(nginx.terminate)
                time.sleep(1)
            guessing = [Client(network, 1, SERVER, port, "guess", 0.1) for _ in range(11)]
            right = Client(network, 1, SERVER, port, TOKEN, 0.25)
            time.sleep(seconds)
            wrong = [status for client in guessing for status, _ in client.finish()]
            answers = right.read_results()
            refused = sum(status != 200 for status, _ in answers)
            rate = len(wrong) / seconds
            print_row(
                f"correct token during {rate:.0f} wrong ones a second, {way}",
                "0 refused",
                f"{refused} of {len(answers)}",
                refused == 0,
            )
            counts = ", ".join(f"{wrong.count(status)} x {status}" for status in sorted(set(wrong)))
            print_row("  responses to the wrong tokens", "", counts, None)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=GPUMON, type=Path)
    parser.add_argument("--seconds", default=60, type=int)
    parser.add_argument("--only", choices=["idle", "guesses"])
    arguments = parser.parse_args()
    if os.geteuid() != 0 or not shutil.which("ip"):
        sys.exit(
            "network namespaces need root and `ip`: run this as root, after `apt-get install "
            "iproute2`"
        )
    for one in (idle, guesses):
        if arguments.only in (None, one.__name__):
            one(arguments.program.resolve(), arguments.seconds)
    sys.exit(f"over the target: {', '.join(missed)}" if missed else 0)


if __name__ == "__main__":
    main()
