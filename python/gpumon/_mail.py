"""What comes from the program: whoever waits for an answer reads for all who wait."""

from __future__ import annotations

import json
import logging
import threading
import time
from typing import TYPE_CHECKING, Any, Callable

from gpumon._errors import ProgramError
from gpumon._warnings import warn_once

if TYPE_CHECKING:
    from gpumon._process import Process

#: Seconds for an answer. One about a measurement that has just ended waits for the driver's last
#: samples, up to three.
PATIENCE_S = 30.0
#: Seconds for another one, while a program that was waited for in vain has sent nothing since: as
#: long as those samples take.
IMPATIENCE_S = 4.0

Json = dict[str, Any]


class Mail:
    """Matches answers with requests, and hands samples on."""

    def __init__(self) -> None:
        self.changed = threading.Condition()
        #: Of samples, each with its interval in seconds.
        self.receivers: dict[int, tuple[float, Callable[[Json], None]]] = {}
        #: Why the program has no readings, where that is so.
        self.failed: str | None = None
        self._is_failure_told = True
        self._is_reading = False
        self._is_silent = False
        self._expected: set[int] = set()
        self._answers: dict[int, Json] = {}

    def answer(self, number: int, request: Json, process: Process) -> Json:
        """Send a request and return the answer, which may be an error.

        Raises:
            ProgramError: the program ends, which `process.failure` tells, or it does not answer.
        """
        self._expected.add(number)
        try:
            process.send(json.dumps({"id": number, **request}).encode() + b"\n")
            # Of many measurements, each would wait for as long as all that have waited before.
            patience_s = IMPATIENCE_S if self._is_silent else PATIENCE_S
            until = time.monotonic() + patience_s
            if not self.wait(
                lambda: number in self._answers or process.failure is not None, until, process
            ):
                self._is_silent = True
                raise ProgramError(
                    f"the gpumon program (PID {process.pid}) has not answered for {patience_s:.0f} s: "
                    "`gpumon doctor` finds out whether the driver hangs"
                )
            answer = self._answers.get(number)
        finally:
            self._expected.discard(number)
            self._answers.pop(number, None)
        self.tell_failure()
        if answer is None:
            raise ProgramError(
                "the gpumon program has ended before it answered: call this again, which starts it anew"
            )
        return answer

    def wait(self, is_done: Callable[[], bool], until: float, process: Process) -> bool:
        """Read until something is the case, or until this moment of the monotonic clock; return
        whether it is.

        It returns earlier where the program has ended.
        """
        # In a forked child, it has: the lock may be held by a thread that is not there.
        while process.failure is None:
            with self.changed:
                while self._is_reading and not is_done() and (left := until - time.monotonic()) > 0:
                    self.changed.wait(left)
                left = until - time.monotonic()
                # What has come already is read also by who has no time to wait.
                if is_done() or self._is_reading:
                    return is_done()
                self._is_reading = True
            try:
                self._take_in(process, process.receive(left))
            finally:
                with self.changed:
                    self._is_reading = False
                    self.changed.notify_all()
            if left <= 0:
                break
        return is_done()

    def tell_failure(self) -> None:
        """Warn of what was read, once all of it is taken in: with warnings as errors, this raises."""
        if not self._is_failure_told and self.failed is not None:
            self._is_failure_told = True
            warn_once(f"gpumon measures nothing: {self.failed}")

    def wake(self) -> None:
        """Let all who wait look again."""
        with self.changed:
            self.changed.notify_all()

    def _take_in(self, process: Process, lines: list[bytes]) -> None:
        if lines:
            self._is_silent = False
        for line in lines:
            try:
                message: Json = json.loads(line)
                number = message.get("id")
            except (ValueError, AttributeError):
                process.fail(
                    f"it wrote {line[:80]!r}, which is no JSON object; reinstall gpumon if its versions differ"
                )
                return
            if number is not None:
                if number in self._expected:
                    self._answers[number] = message
            elif "error" in message:
                # The program could not read a line, nor which request it was: all who wait learn of
                # it. Requests that are answered already were read.
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
