"""A running ``gpumon measure`` process. Lines are sent to it without blocking, and received from
it.
"""

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

#: The maximum number of lines that are queued while the program does not read. If there are more,
#: the queue is cleared and the program counts as failed.
MAX_WAITING_LINES = 50_000
#: The maximum number of lines in one write.
MAX_LINES_PER_WRITE = 100
#: The number of seconds that the program has to exit after its input was closed.
END_S = 1.0
#: The maximum number of bytes of the program's error output that an error message quotes.
MAX_ERROR_CHARACTERS = 600
#: The reasons why the connection is closed: the program has ended, or this process has closed the
#: connection.
ENDED, CLOSED = "it has ended", "it was closed"
#: With `MSG_NOSIGNAL`, writing to a closed connection raises an error. Without this flag, this
#: process would receive SIGPIPE, which ends a process that does not ignore it.
FLAGS = socket.MSG_DONTWAIT | socket.MSG_NOSIGNAL


class Process:
    """The running program and the connection to it.

    Any thread may send, even from a signal handler or a finalizer. Only one thread at a time may
    receive.
    """

    def __init__(self, program: str) -> None:
        """Start the program, which takes some milliseconds. The constructor does not wait until it
        is ready.

        Raises:
            OSError: the program cannot be started.
        """
        self.started = time.monotonic()
        #: The reason why nothing can be sent, or None.
        self.failure: str | None = None
        self._waiting: collections.deque[bytes] = collections.deque()
        #: The unsent remainder of the current write, which may contain several lines.
        self._part = b""
        self._writing = threading.Lock()
        self._rest = b""
        self._stderr = _open_unnamed_file()
        # A socket pair is used instead of two pipes, because on a socket a single write can be
        # nonblocking. A pipe would need O_NONBLOCK, and this flag would also apply to the program
        # at its other end.
        self._socket, theirs = socket.socketpair()
        try:
            self._child = subprocess.Popen(
                [program, "measure"],
                stdin=theirs.fileno(),
                stdout=theirs.fileno(),
                stderr=self._stderr,
                # The program runs in its own session. So an interrupt from the terminal or from the
                # Jupyter kernel only reaches the measured code.
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
        """Write a line, or queue it until the program reads again."""
        if len(self._waiting) >= MAX_WAITING_LINES:
            self.flush()
            if len(self._waiting) >= MAX_WAITING_LINES:
                self.mark_failed("it does not read its input")
        self._waiting.append(line)
        self.flush()

    def send_later(self, line: bytes) -> None:
        """Queue a line, which is written together with the next one. This saves time, because the
        most expensive part of a write is waking the program.
        """
        self._waiting.append(line)

    def flush(self) -> None:
        """Write the queued lines as far as possible without blocking."""
        # If another thread has the lock, it also writes this thread's line, because it checks the
        # queue again after it has released the lock.
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
                    self._waiting.popleft()
                    for _ in range(min(len(self._waiting), MAX_LINES_PER_WRITE))
                )
            try:
                self._part = self._part[self._socket.send(self._part, FLAGS) :]
            except BlockingIOError:
                return False
            except OSError:
                self.mark_failed(None)
                return False
        return True

    def receive(self, timeout_s: float) -> list[bytes]:
        """Return the lines that have arrived, waiting at most `timeout_s`. The list is empty after
        a timeout, or if the program has ended.
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
                self.mark_failed(None)
            received.append(part)
        *lines, self._rest = b"".join(received).split(b"\n")
        return lines

    def mark_failed(self, why: str | None) -> None:
        """Record that the program has failed, for the reason `why` or because it has ended."""
        if self.failure is None:
            self.failure = why or ENDED
            self._waiting.clear()
            with contextlib.suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> str:
        """End the program. Return the reason for its failure, with the end of its error output."""
        self.flush()
        self.mark_failed(CLOSED)
        self._socket.close()
        code = _wait_for_exit(self._child, is_polite=self.failure in (CLOSED, ENDED))
        try:
            size = os.fstat(self._stderr).st_size
            words = os.pread(
                self._stderr, MAX_ERROR_CHARACTERS, max(0, size - MAX_ERROR_CHARACTERS)
            ).decode(errors="replace")
        finally:
            os.close(self._stderr)
        if self.failure == ENDED:
            how = (
                f"it was ended by {_signal_name(-code)}"
                if code < 0
                else f"it exited with code {code}"
            )
            return f"{how}: {' '.join(words.split())}" if words.strip() else how
        return self.failure or ""

    def release_in_forked_child(self) -> None:
        """Release the resources that a forked child has inherited from its parent."""
        self.failure = "it belongs to the parent process"
        self._waiting.clear()
        self._socket.close()
        with contextlib.suppress(OSError):
            os.close(self._stderr)
        # The program is a child of the parent, so the forked process cannot wait for it. A return
        # code keeps `subprocess` from trying.
        self._child.returncode = 0


def _wait_for_exit(child: subprocess.Popen[bytes], is_polite: bool) -> int:
    """Wait for a program whose input is closed, terminate it if necessary, and return its exit
    code.
    """
    for hurry in [lambda: None, child.terminate, child.kill] if is_polite else [child.kill]:
        hurry()
        with contextlib.suppress(subprocess.TimeoutExpired):
            return child.wait(END_S)
    # The program hangs in a call of the driver that even SIGKILL cannot end, so waiting for it
    # could block forever.
    child.returncode = -signal.SIGKILL
    return child.returncode


def _open_unnamed_file() -> int:
    """Return a file for the program's standard error. Writing to it never blocks."""
    # Python builds for an old glibc, such as those of conda, lack this function.
    if hasattr(os, "memfd_create"):
        return os.memfd_create("gpumon-stderr")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
