"""Messages from the program. If several threads wait for messages, one of them reads the messages
for all.
"""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Callable

from gpumon._errors import ProgramError, warn_once

if TYPE_CHECKING:
    from gpumon._process import Process

#: Maximum time to wait for an answer, in seconds. The answer about a measurement that has just
#: ended can take three seconds, because the program waits for the driver's last samples.
PATIENCE_S = 30.0
#: The maximum time to wait for an answer, in seconds, while the program seems to hang: an earlier
#: request got no answer, and the program has sent nothing since then. This is slightly longer than
#: the driver takes to report its last samples.
IMPATIENCE_S = 4.0

Json = dict[str, Any]


class MessageDispatcher:
    """Matches answers with requests, and passes samples to receivers."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        #: The receivers of samples, each with its interval in seconds.
        self.receivers: dict[int, tuple[float, Callable[[Json], None]]] = {}
        #: The reason why the program has no readings, or None.
        self.failed: str | None = None
        self._is_failure_told = True
        self._is_reading = False
        self._is_silent = False
        self._expected: set[int] = set()
        self._answers: dict[int, Json] = {}

    def send_request(self, number: int, request: Json, process: Process) -> Json:
        """Send a request and return the answer, which may be an error.

        Raises:
            ProgramError: the program has ended (see `process.failure`) or does not answer.
        """
        self._expected.add(number)
        try:
            process.send(json.dumps({"id": number, **request}).encode() + b"\n")
            # If the program hangs, a loop over many measurements would otherwise wait `PATIENCE_S`
            # for each of them.
            patience_s = IMPATIENCE_S if self._is_silent else PATIENCE_S
            until = time.monotonic() + patience_s
            if not self.wait(
                lambda: number in self._answers or process.failure is not None, until, process
            ):
                self._is_silent = True
                raise ProgramError(
                    f"the gpumon program (PID {process.pid}) has not answered for "
                    f"{patience_s:.0f} s: run `gpumon doctor` to check whether the driver hangs"
                )
            answer = self._answers.get(number)
        finally:
            self._expected.discard(number)
            self._answers.pop(number, None)
        self.warn_of_failure()
        if answer is None:
            raise ProgramError(
                "the gpumon program ended before it answered: call this function again, which "
                "restarts the program"
            )
        return answer

    def wait(self, is_done: Callable[[], bool], until: float, process: Process) -> bool:
        """Read messages until a condition is met or the monotonic clock reaches `until`; return
        whether the condition is met.

        The method returns earlier if the program has ended.
        """
        # In a forked child, `failure` is already set, so the child does not enter this loop. It
        # must not take the lock, because a thread of the parent may hold it.
        while process.failure is None:
            with self.changed:
                while self._is_reading and not is_done() and (left := until - time.monotonic()) > 0:
                    self.changed.wait(left)
                left = until - time.monotonic()
                # Messages that have already arrived are read even if the deadline has passed.
                if is_done() or self._is_reading:
                    return is_done()
                self._is_reading = True
            try:
                self._process_lines(process, process.receive(left))
            finally:
                with self.changed:
                    self._is_reading = False
                    self.changed.notify_all()
            if left <= 0:
                break
        return is_done()

    def warn_of_failure(self) -> None:
        """Warn that the program has no readings. This happens after all messages are processed,
        because the warning may be raised as an error.
        """
        if not self._is_failure_told and self.failed is not None:
            self._is_failure_told = True
            warn_once(f"gpumon measures no GPUs: {self.failed}")

    def wake_waiting_threads(self) -> None:
        """Wake all waiting threads, so that they check their conditions."""
        with self.changed:
            self.changed.notify_all()

    def _process_lines(self, process: Process, lines: list[bytes]) -> None:
        if lines:
            self._is_silent = False
        for line in lines:
            try:
                message: Json = json.loads(line)
                number = message.get("id")
            except (ValueError, AttributeError):
                process.mark_failed(
                    f"it wrote {line[:80]!r}, which is not a JSON object; reinstall gpumon if the "
                    f"versions of the program and the Python package differ"
                )
                return
            if number is not None:
                if number in self._expected:
                    self._answers[number] = message
            elif "error" in message:
                # The program could not parse a line, so it does not know the ID of the request. The
                # error therefore goes to all unanswered requests.
                for expected in list(self._expected):
                    self._answers.setdefault(expected, message)
            elif "sample" in message:
                self.failed = None
                for _, receive in list(self.receivers.values()):
                    receive(message["sample"])
            elif "failed" in message:
                self.failed = str(message["failed"])
                self._is_failure_told = False
            elif "remark" in message:
                logging.getLogger("gpumon").info("%s", message["remark"])
