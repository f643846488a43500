"""A terminal that reads all output of the programs on it."""

import fcntl
import os
import pty
import struct
import termios
import threading
import time


class Screen:
    """A terminal of this size. Programs use `inside` for their input and output. `drawn` is the
    number of characters that they have written, and `first` is the time of the first one.
    """

    def __init__(self, columns, rows):
        self.outside, self.inside = pty.openpty()
        fcntl.ioctl(self.inside, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.drawn = 0
        self.first = None
        threading.Thread(target=self._read_output, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        os.close(self.inside)

    def _read_output(self):
        try:
            while text := os.read(self.outside, 1 << 16):
                self.first = self.first or time.perf_counter()
                self.drawn += len(text)
        except OSError:
            # The last program on the terminal has ended, so reading from the terminal fails.
            pass
