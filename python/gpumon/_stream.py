"""Current readings, and streams of new readings."""

from __future__ import annotations

import asyncio
import collections
import time
from typing import NoReturn

from gpumon._arguments import check_seconds
from gpumon._errors import GpumonError, ProgramError
from gpumon._helper import Helper, current_helper
from gpumon._mail import PATIENCE_S, Json
from gpumon._snapshot import Snapshot

#: The maximum number of snapshots that wait for a slow consumer. If there are more, the oldest are
#: dropped.
MAX_WAITING_SAMPLES = 60
#: The fraction of the interval by which a sample may arrive early without being skipped.
TOLERANCE = 0.25
#: The range of valid intervals, as a part of error messages.
INTERVALS = " from 0.1 to 3600"
#: The maximum time between two checks for a new sample in `async for`, in seconds.
POLL_INTERVAL_S = 0.05


def snapshot() -> Snapshot:
    """Return the newest readings of all GPUs. The first call in a process waits for the first
    sample, about a second.

    Raises:
        ProgramError: the ``gpumon`` program is missing or does not answer.
        RequestError: there is no GPU to read.

    >>> len(gpumon.snapshot().gpus) > 0
    True
    """
    return _snapshot(current_helper())


def stream(interval_s: float = 1.0) -> Stream:
    """Iterate over new readings with ``for`` or ``async for``.

    Args:
        interval_s: seconds from one snapshot to the next, 0.1 or more.

    Raises:
        TypeError: the interval is not a number.
        ValueError: the interval is shorter than 0.1 s or longer than an hour.
        ProgramError: the ``gpumon`` program is missing. The loop raises this error if the program
            does not answer.
        RequestError: raised by the loop: there is no GPU to read.

    >>> for now in gpumon.stream(0.2):
    ...     if now.gpus[0].memory_used_bytes is not None:
    ...         break
    """
    return Stream(interval_s)


def _snapshot(helper: Helper) -> Snapshot:
    found: Json = helper.send_request({"snapshot": True})["snapshot"]
    return Snapshot(found["inventory"], found["sample"])


class Stream:
    """An iterator over new snapshots. It ends when `close` is called, at the end of a ``with``
    block, or when a loop such as ``for now in gpumon.stream()`` is left with ``break``.

    Up to 60 snapshots wait for a consumer that is slower than the readings. After that, the oldest
    snapshots are dropped.
    """

    def __init__(self, interval_s: float = 1.0) -> None:
        self._number: int | None = None
        self._interval_s = check_seconds(interval_s, "interval_s", INTERVALS)
        if not 0.1 <= self._interval_s <= 3600:
            raise ValueError(
                f"interval_s={interval_s} is invalid: pass a number of seconds{INTERVALS}"
            )
        self._helper = current_helper()
        self._waiting: collections.deque[Json] = collections.deque(maxlen=MAX_WAITING_SAMPLES)
        #: The inventory, which every snapshot needs. Samples do not repeat it: they contain only
        #: the index of each GPU.
        self._inventory: Json | None = None
        self._number = self._helper.subscribe(
            self._interval_s, _Receiver(self._waiting, self._interval_s)
        )

    def close(self) -> None:
        """End the stream."""
        if self._number is not None:
            self._helper.unsubscribe(self._number)
            self._number = None

    def __iter__(self) -> Stream:
        return self

    def __next__(self) -> Snapshot:
        late = self._next_sample_deadline()
        while self._number is not None:
            if self._wait_for_sample(late):
                return self._next_snapshot()
            self._restart_if_late(late)
        raise StopIteration

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> Snapshot:
        late = self._next_sample_deadline()
        while self._number is not None:
            if self._wait_for_sample(time.monotonic()):
                return self._next_snapshot()
            self._restart_if_late(late)
            # The loop polls instead of waiting in a background thread, because such a thread would
            # continue to wait after the task is canceled.
            await asyncio.sleep(min(POLL_INTERVAL_S, self._interval_s / 4))
        raise StopAsyncIteration

    def _next_snapshot(self) -> Snapshot:
        # The program has already sent a sample, so it returns the inventory immediately.
        inventory: Json = self._inventory or _snapshot(self._helper).to_dict()["inventory"]
        self._inventory = inventory
        return Snapshot(inventory, self._waiting.popleft())

    def _next_sample_deadline(self) -> float:
        return time.monotonic() + self._interval_s + PATIENCE_S

    def _wait_for_sample(self, until: float) -> bool:
        def is_over() -> bool:
            return bool(self._waiting) or self._number is None or self._helper.has_failed

        return self._helper.wait(is_over, until) and bool(self._waiting)

    def _restart_if_late(self, late: float) -> None:
        """Restart the program if it has ended, and raise an error if no sample has arrived by the
        time `late`.

        Raises:
            ProgramError: the program cannot be started, or sends no samples.
            RequestError: the program has nothing to read.
        """
        try:
            self._helper.restart_if_ended()
            if time.monotonic() > late:
                raise ProgramError(
                    "the gpumon program sends no samples: run `gpumon doctor` to check whether "
                    "the driver hangs"
                )
        except GpumonError:
            self.close()
            raise

    def __enter__(self) -> Stream:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()

    def __del__(self) -> None:
        self.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a stream cannot be copied or pickled: call gpumon.stream() in the process that reads "
            "it"
        )


class _Receiver:
    """Puts samples into a queue at the interval of one stream. It has no reference to the stream,
    so that Python can delete a stream that is no longer used.
    """

    def __init__(self, waiting: collections.deque[Json], interval_s: float) -> None:
        self._waiting = waiting
        self._least_ms = interval_s * 1000 * (1 - TOLERANCE)
        self._last_ms = float("-inf")

    def __call__(self, sample: Json) -> None:
        # If another stream of this process has a shorter interval, samples arrive more often than
        # this stream needs. The extra samples are skipped.
        if sample["at_ms"] - self._last_ms >= self._least_ms:
            self._last_ms = sample["at_ms"]
            self._waiting.append(sample)
