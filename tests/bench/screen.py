"""A terminal that somebody looks at: whatever is drawn on it is read."""

import fcntl
import os
import pty
import struct
import termios
import threading
import time


class Screen:
    """Of so many columns and rows; programs get `inside` as their input and output. Counts what is
    `drawn`, from `first` on.
    """

    def __init__(self, columns, rows):
        self.outside, self.inside = pty.openpty()
        fcntl.ioctl(self.inside, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.drawn = 0
        self.first = None
        threading.Thread(target=self._look, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.inside)

    def _look(self):
        try:
            while text := os.read(self.outside, 1 << 16):
                self.first = self.first or time.perf_counter()
                self.drawn += len(text)
        except OSError:
            # The last program on it has ended.
            pass
