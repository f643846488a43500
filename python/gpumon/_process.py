"""One running ``gpumon measure``: lines to it that never block, and lines from it."""

from __future__ import annotations

import collections
import contextlib
import os
import select
import signal
import socket
import subprocess
import tempfile
import threading
import time

#: So many lines wait for a program that does not read; what comes then is dropped, and the program
#: given up.
MOST_WAITING = 50_000
#: So many lines are written at once.
AT_ONCE = 100
#: Seconds that the program has to end after its input has.
END_S = 1.0
#: Bytes of its last words that an error quotes.
LAST_WORDS = 600
#: Why nothing is sent any more, where nothing else is wrong.
ENDED, CLOSED = "it has ended", "it was closed"
#: A closed connection is an error, and no signal that ends a program which has asked for SIGPIPE.
FLAGS = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class Process:
    """The program and the connection to it.

    Any thread may send, also from a signal handler or a finalizer; one at a time may receive.
    """

    def __init__(self, program: str) -> None:
        """Start it: some milliseconds, in which it is not waited for.

        Raises:
            OSError: it cannot be started.
        """
        self.started = time.monotonic()
        #: Why nothing can be sent any more.
        self.failure: str | None = None
        self._waiting: collections.deque[bytes] = collections.deque()
        #: What is being written, of one line or several.
        self._part = b""
        self._writing = threading.Lock()
        self._rest = b""
        self._stderr = _unnamed_file()
        # A socket pair in the place of two pipes: only sockets can be written to without a mode
        # that both ends share.
        self._socket, theirs = socket.socketpair()
        try:
            self._child = subprocess.Popen(
                [program, "measure"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._stderr,
                # An interrupt of the terminal or of a kernel is meant for the measured code.
                start_new_session=True,
            )
        except BaseException:
            self._socket.close()
            os.close(self._stderr)
            raise
        finally:
            theirs.close()

    @property
    def pid(self) -> int:
        return self._child.pid

    def send(self, line: bytes) -> None:
        """Write a line, or keep it until the program reads again."""
        if len(self._waiting) >= MOST_WAITING:
            self.flush()
            if len(self._waiting) >= MOST_WAITING:
                self.fail("it reads nothing")
        self._waiting.append(line)
        self.flush()

    def send_later(self, line: bytes) -> None:
        """Write a line with the next one: each write wakes the program, which takes longer than all
        else.
        """
        self._waiting.append(line)

    def flush(self) -> None:
        """Write what waits, as far as that does not block."""
        # Whoever finds the lock taken leaves its line to the holder, which looks once more after
        # its release.
        while self._is_waiting() and self.failure is None and self._writing.acquire(blocking=False):
            try:
                is_full = not self._write()
            finally:
                self._writing.release()
            if is_full:
                return

    def _is_waiting(self) -> bool:
        return bool(self._waiting or self._part)

    def _write(self) -> bool:
        while self._is_waiting():
            if not self._part:
                self._part = b"".join(
                    self._waiting.popleft() for _ in range(min(len(self._waiting), AT_ONCE))
                )
            try:
                self._part = self._part[self._socket.send(self._part, FLAGS) :]
            except BlockingIOError:
                return False
            except OSError:
                self.fail(None)
                return False
        return True

    def receive(self, timeout_s: float) -> list[bytes]:
        """Return the lines that have come, after at most so long; none where it takes longer or the
        program has ended.
        """
        poll = select.poll()
        # Another thread may have closed the socket.
        with contextlib.suppress(ValueError):
            poll.register(
                self._socket, select.POLLIN | (select.POLLOUT if self._is_waiting() else 0)
            )
        if self.failure is not None or not poll.poll(max(0.0, timeout_s) * 1000):
            return []
        self.flush()
        received = [self._rest]
        while self.failure is None:
            try:
                part = self._socket.recv(1 << 18, socket.MSG_DONTWAIT)
            except BlockingIOError:
                break
            except OSError:
                part = b""
            if not part:
                self.fail(None)
            received.append(part)
        *lines, self._rest = b"".join(received).split(b"\n")
        return lines

    def fail(self, why: str | None) -> None:
        """Give the program up: for this reason, or since the connection has ended."""
        if self.failure is None:
            self.failure = why or ENDED
            self._waiting.clear()
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> str:
        """End it, and return why it failed, with its last words."""
        self.flush()
        self.fail(CLOSED)
        self._socket.close()
        code = _ended(self._child, is_polite=self.failure in (CLOSED, ENDED))
        try:
            size = os.fstat(self._stderr).st_size
            words = os.pread(self._stderr, LAST_WORDS, max(0, size - LAST_WORDS)).decode(
                errors="replace"
            )
        finally:
            os.close(self._stderr)
        if self.failure == ENDED:
            how = (
                f"it was ended by {_signal_name(-code)}"
                if code < 0
                else f"it has ended with exit code {code}"
            )
            return f"{how}: {' '.join(words.split())}" if words.strip() else how
        return self.failure or ""

    def abandon(self) -> None:
        """In a forked child: let go of what belongs to the parent."""
        self.failure = "it belongs to another process"
        self._waiting.clear()
        self._socket.close()
        with contextlib.suppress(OSError):
            os.close(self._stderr)
        # It is no child of this process: there is nothing to wait for.
        self._child.returncode = 0


def _ended(child: subprocess.Popen[bytes], is_polite: bool) -> int:
    """Wait for a program whose input has ended, hurry it on, and return its exit code."""
    for hurry in [lambda: None, child.terminate, child.kill] if is_polite else [child.kill]:
        hurry()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(END_S)
    # The driver holds it in a call that nothing ends, and would hold whoever waits.
    child.returncode = -signal.SIGKILL
    return child.returncode


def _unnamed_file() -> int:
    """Return a file for what the program says on standard error, which nothing waits for."""
    # Pythons that were built for an old glibc, as conda's are, lack it.
    if hasattr(os, "memfd_create"):
        return os.memfd_create("gpumon-stderr")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
