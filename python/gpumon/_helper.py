"""The ``gpumon`` program that serves this process. It is started when it is first needed, and
restarted once if it ends early.
"""

from __future__ import annotations

import atexit
import contextlib
import itertools
import json
import os
import threading
import time
from typing import TYPE_CHECKING, Callable, NoReturn

from gpumon._errors import ProgramError, RequestError, warn_once
from gpumon._find import GpumonNotFound, find_gpumon_bin
from gpumon._mail import Json, MessageDispatcher

if TYPE_CHECKING:
    from gpumon._process import Process

#: If the program ends within this time twice in a row, it is not started again.
SHORT_LIFE_S = 60.0
#: The interval in seconds at which the thread that reads samples checks whether any receivers
#: remain.
DRAIN_S = 1.0


class Run:
    """One measurement from the helper's point of view: its time range, and the program that
    measures it. It continues when the program is restarted.
    """

    def __init__(self, number: int, name: str | None, pid: int | None) -> None:
        self.number = number
        self.name = name
        #: The root of the measured process tree.
        self.pid = os.getpid() if pid is None else pid
        self.begun_ms = time.time() * 1000
        self.ended_ms: float | None = None
        #: The program, or None if nothing measures the run.
        self.process: Process | None = None
        #: The reasons why a part of the GPU use is unknown.
        self.lost: list[str] = []
        #: Whether the program has measured only the last part of the run, because the program was
        #: restarted.
        self.is_partial = False

    @property
    def duration_s(self) -> float:
        """Seconds from the start to the end, or to now."""
        return max(0.0, (self.ended_ms or time.time() * 1000) - self.begun_ms) / 1000

    def copy_with_end(self, ended_ms: float) -> Run:
        """Return a copy that ended at `ended_ms` and that no program measures."""
        run = Run(self.number, self.name, self.pid)
        run.begun_ms, run.ended_ms = self.begun_ms, ended_ms
        return run

    def format_begin_request(self, at_ms: float) -> bytes:
        name = "" if self.name is None else f',"name":{json.dumps(self.name)}'
        return f'{{"begin":{self.number},"at_ms":{at_ms:.3f}{name},"pid":{self.pid}}}\n'.encode()

    def format_end_request(self) -> bytes:
        return f'{{"end":{self.number},"at_ms":{self.ended_ms:.3f}}}\n'.encode()


class Helper:
    """Sends measurements and requests to the program.

    A thread reads from the program only while samples are streamed. While nothing reads its output,
    the program does not measure.
    """

    def __init__(self) -> None:
        self._process: Process | None = None
        #: The reason why the program is not available and will not be started again.
        self._unavailable: str | None = None
        self._short_lives = 0
        # The lock is reentrant, because a signal handler may start a measurement while this thread
        # starts the program.
        self._starting = threading.RLock()
        self._numbers = itertools.count(1)
        self._runs: dict[int, Run] = {}
        self._mail = MessageDispatcher()
        self._receivers = self._mail.receivers
        self._is_draining = False
        #: The reason why this helper has ended: the process was forked, or the interpreter is
        #: exiting.
        self._over: str | None = None

    def begin_run(self, name: str | None, pid: int | None) -> Run:
        """Begin a measurement of this process or of another one. Only the first call may wait: it
        waits until the program has started.
        """
        run = Run(next(self._numbers), name, pid)
        for _ in range(2):
            process = run.process = self._ensure_running_process()
            if process is None:
                break
            self._runs[run.number] = run
            process.send(run.format_begin_request(run.begun_ms))
            # If the program has ended in the meantime, the loop starts a new one. This is not
            # necessary if another thread has already started a program and has begun this run
            # again.
            if process.failure is None or run.process is not process:
                return run
            self._runs.pop(run.number, None)
        run.process = None
        run.lost.append(self._failure_cause())
        return run

    def end_run(self, run: Run) -> None:
        """End a measurement, without waiting."""
        run.ended_ms = max(run.begun_ms, time.time() * 1000)
        process = run.process
        if process is not None and self._over is None:
            process.send(run.format_end_request())
            if process.failure is not None:
                self._ensure_running_process()

    def forget_run(self, run: Run) -> None:
        """Discard a measurement whose result is not needed. This method takes no lock, so a
        finalizer may call it.
        """
        process = run.process
        if (
            self._runs.pop(run.number, None) is not None
            and process is not None
            and self._over is None
        ):
            process.send_later(b'{"forget":%d}\n' % run.number)

    def mark(self, text: str) -> None:
        """Add a mark with this text at the current time, without waiting."""
        process = self._ensure_running_process()
        if process is not None:
            process.send(json.dumps({"mark": text, "at_ms": time.time() * 1000}).encode() + b"\n")

    def request_cost(self, run: Run) -> Json | None:
        """Return the program's answer about a measurement. If there is no answer, return `None`;
        `run.lost` then contains the reason.
        """
        for _ in range(2):
            process = run.process
            if process is None or self._over is not None:
                break
            try:
                return self._send_request({"cost": run.number}, process)
            except RequestError as error:
                run.lost.append(str(error))
                break
            except ProgramError as error:
                if process.failure is None:
                    # The program is running, but has not answered in time. A late answer is
                    # harmless: it has the ID of this request, so no other request receives it.
                    run.lost.append(str(error))
                    break
                # The program has ended. This call starts a new one, which measures the rest of the
                # run if the run is still in progress.
                self._ensure_running_process()
        if self._over is not None and run.process is not None:
            run.lost.append(self._over)
        return None

    def send_request(self, request: Json) -> Json:
        """Return the answer to a request.

        Raises:
            ProgramError: there is no program, it has ended twice, or it does not answer.
            RequestError: the program refuses the request. The message describes the remedy.
        """
        for is_last in (False, True):
            process = self._ensure_running_process()
            if process is None:
                self._raise_failure()
            try:
                return self._send_request(request, process)
            except ProgramError:
                if is_last or process.failure is None:
                    raise
        raise AssertionError("the loop returns or raises")

    def _send_request(self, request: Json, process: Process) -> Json:
        answer = self._mail.send_request(next(self._numbers), request, process)
        if "error" in answer:
            raise RequestError(str(answer["error"]))
        return answer

    def wait(self, is_done: Callable[[], bool], until: float) -> bool:
        """Read messages from the program until a condition is met or the monotonic clock reaches
        `until`; return whether the condition is met.
        """
        process = self._ensure_running_process()
        return is_done() if process is None else self._mail.wait(is_done, until, process)

    def subscribe(self, interval_s: float, receive: Callable[[Json], None]) -> int:
        """Pass each new sample to a receiver. Return a number for `unsubscribe`.

        Raises:
            ProgramError: there is no program.
        """
        number = next(self._numbers)
        self._receivers[number] = (interval_s, receive)
        if self._ensure_running_process() is None:
            del self._receivers[number]
            self._raise_failure()
        self._send_interval(self._process)
        with self._mail.changed:
            if not self._is_draining:
                self._is_draining = True
                threading.Thread(
                    target=self._read_for_receivers, name="gpumon", daemon=True
                ).start()
        return number

    def _read_for_receivers(self) -> None:
        while True:
            is_running = self._ensure_running_process() is not None
            with self._mail.changed:
                if not self._receivers or not is_running:
                    self._is_draining = False
                    return
            self.wait(lambda: not self._receivers, time.monotonic() + DRAIN_S)

    def unsubscribe(self, number: int) -> None:
        """Remove a receiver. A finalizer may call this method."""
        if self._receivers.pop(number, None) is not None and self._over is None:
            self._send_interval(self._process)

    @property
    def has_ended(self) -> bool:
        """Whether this helper has ended."""
        return self._over is not None

    @property
    def has_failed(self) -> bool:
        """Whether the program cannot read any GPU."""
        return self._mail.failed is not None

    def restart_if_ended(self) -> None:
        """Restart the program if it has ended.

        Raises:
            ProgramError: the program cannot be started.
            RequestError: the program has nothing to read.
        """
        if self._ensure_running_process() is None:
            self._raise_failure()
        self._mail.warn_of_failure()
        if self._mail.failed is not None:
            raise RequestError(self._mail.failed)

    def _send_interval(self, process: Process | None) -> None:
        intervals = [interval_s for interval_s, _ in list(self._receivers.values())]
        if process is not None:
            process.send(
                json.dumps({"stream": round(min(intervals) * 1000) if intervals else None}).encode()
                + b"\n"
            )

    def _ensure_running_process(self) -> Process | None:
        """Return the running program, starting it if necessary; `None` if that fails."""
        process = self._process
        if process is not None and process.failure is None and self._over is None:
            return process
        if self._unavailable is not None or self._over is not None:
            return None
        with self._starting:
            if self._process is not None and self._process.failure is not None:
                self._replace_ended_process(self._process)
            if self._process is None and self._unavailable is None and self._over is None:
                self._start()
            return self._process

    def _start(self) -> None:
        from gpumon._process import Process

        try:
            self._process = Process(find_gpumon_bin())
        except (GpumonNotFound, OSError) as error:
            cause = (
                str(error)
                if isinstance(error, GpumonNotFound)
                else f"the gpumon program cannot be started: {error}"
            )
            self._disable_with_warning(cause)
            return
        if self._receivers:
            self._send_interval(self._process)

    def _replace_ended_process(self, process: Process) -> None:
        """Replace a program that has ended, unless it keeps ending soon after its start. Record for
        each of its measurements which part of the GPU use is unknown.
        """
        is_short = time.monotonic() - process.started < SHORT_LIFE_S
        self._short_lives = self._short_lives + 1 if is_short else 1
        why = process.close()
        self._process = None
        if self._short_lives > 1:
            self._disable_with_warning(
                f"the gpumon program ends repeatedly: {why}. Run `gpumon doctor` to check this "
                f"machine"
            )
        else:
            self._start()
        now_ms = time.time() * 1000
        clock = time.strftime("%H:%M:%S")
        successor: Process | None = self._process
        for run in [run for run in list(self._runs.values()) if run.process is process]:
            run.process = successor if run.ended_ms is None else None
            if run.process is None:
                run.lost.append(f"the gpumon program ended before it reported the usage: {why}")
                self._runs.pop(run.number, None)
            else:
                run.lost.append(
                    f"the usage before {clock}, when the gpumon program was restarted: {why}"
                )
                run.is_partial = True
                run.process.send(run.format_begin_request(now_ms))
        self._mail.wake_waiting_threads()

    def _raise_failure(self) -> NoReturn:
        """Raise an error for the caller, because there is no program."""
        if _is_exiting and threading.current_thread() is not threading.main_thread():
            # The interpreter is about to end this daemon thread. An error would print a traceback
            # at exit.
            raise SystemExit
        raise ProgramError(self._failure_cause())

    def _failure_cause(self) -> str:
        """Return the reason why there is no program."""
        return self._over or self._unavailable or "the gpumon program ended right after its start"

    def _disable_with_warning(self, cause: str) -> None:
        self._unavailable = cause
        warn_once(f"gpumon measures no GPUs: {cause}")

    def close(self) -> None:
        """End the program, because the interpreter is exiting."""
        self._over = "the Python interpreter is exiting"
        process, self._process = self._process, None
        if process is not None:
            process.close()

    def end_in_forked_child(self, parent: int) -> None:
        """End this helper in a forked child. This method takes no lock, because threads that exist
        only in the parent may hold locks, and nothing would release these in the child.
        """
        self._over = (
            f"the measurement was started in the process {parent}, and only that process has its "
            f"numbers"
        )
        if self._process is not None:
            self._process.release_in_forked_child()


#: Whether the interpreter is about to end.
_is_exiting = False
_current = Helper()
_parent = os.getpid()


def current_helper() -> Helper:
    """Return the helper of this process."""
    return _current


def _after_fork() -> None:
    global _current, _parent
    _current.end_in_forked_child(_parent)
    _current, _parent = Helper(), os.getpid()


def _at_exit() -> None:
    global _is_exiting
    _is_exiting = True
    with contextlib.suppress(Exception):
        _current.close()


os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)
