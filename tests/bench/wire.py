"""The bytes that a client of the stream receives, and their cost to the server, with simulated GPUs
whose readings change.
"""

import contextlib
import selectors
import socket
import time

from clients import format_limit, is_within
from machine import PORT, Machine
from report import print_row

#: The stream that the page and the panel request.
COMPRESSED = "/api/v1/stream?encoding=deflate-raw"
PLAIN = "/api/v1/stream"
OPENING_SECONDS = 4


def wire(seconds, history_seconds):
    for gpus, rate, opening in ((64, 30, 200), (8, None, None)):
        with Machine(gpus=0) as machine, machine.serve("--source", f"sim:{gpus}") as program:
            time.sleep(history_seconds)
            serve = program.tree_pids()[:1]
            cost = {0: program.cpu_percent(seconds, serve)}
            with contextlib.closing(Clients(PLAIN, 1)) as clients:
                plain = clients.measure_received_data(seconds)
            came = {}
            for count in (1, 100):
                with contextlib.closing(Clients(COMPRESSED, count)) as clients:
                    begun, at = program.cpu_seconds(serve), time.monotonic()
                    came[count] = clients.measure_received_data(seconds)
                    cost[count] = (
                        100 * (program.cpu_seconds(serve) - begun) / (time.monotonic() - at)
                    )
        what, one = f"{gpus} GPUs, 1 Hz, one compressed client", came[1]
        print_row(
            what,
            format_limit(rate, "kB/s"),
            f"{one.rate:.1f} kB/s ({plain.rate / one.rate:.1f} x less than plain)",
            is_within(one.rate, rate),
        )
        print_row(
            "  its first four seconds",
            format_limit(opening, "kB"),
            f"{one.opening:.0f} kB ({plain.opening:.0f} kB plain)",
            is_within(one.opening, opening),
        )
        each = (cost[100] - cost[0]) / 100
        print_row(
            "  CPU of serve per client, of 100", "<= 0.1 % of a core", f"{each:.3f} %", each <= 0.1
        )
        print_row(
            "    with none, one and 100",
            "",
            ", ".join(f"{percent:.2f} %" for percent in cost.values()),
            None,
        )


class Clients:
    """Clients that read and discard all data."""

    def __init__(self, path, count):
        self.selector = selectors.DefaultSelector()
        request = (
            f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{PORT}\r\nConnection: Upgrade\r\nUpgrade: "
            f"websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: "
            f"Z3B1bW9uLXdpcmUtYmVuY2g=\r\n\r\n"
        )
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", PORT))
            client.sendall(request.encode())
            client.setblocking(False)
            self.selector.register(client, selectors.EVENT_READ)
        self.count, self.opening, self.rate = count, 0.0, 0.0

    def measure_received_data(self, seconds):
        """Measures the data that one client receives: in the first seconds (`opening`, in kB), and
        after that per second (`rate`, in kB/s).
        """
        opening = self.count_bytes_until(time.monotonic() + OPENING_SECONDS)
        rest = self.count_bytes_until(time.monotonic() + seconds)
        self.opening, self.rate = opening / 1000 / self.count, rest / 1000 / self.count / seconds
        return self

    def count_bytes_until(self, end):
        received = 0
        while (left := end - time.monotonic()) > 0:
            for key, _ in self.selector.select(left):
                with contextlib.suppress(BlockingIOError):
                    data = key.fileobj.recv(1 << 20)
                    if not data:
                        raise RuntimeError("the server closed a connection")
                    received += len(data)
        return received

    def close(self):
        for key in list(self.selector.get_map().values()):
            key.fileobj.close()
        self.selector.close()
