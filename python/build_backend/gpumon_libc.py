"""Stops the build on unsupported systems before any dependency is downloaded or built."""

from __future__ import annotations

import os
import sys


def check_libc() -> None:
    """Exit unless this system is Linux with glibc."""
    try:
        found = os.confstr("CS_GNU_LIBC_VERSION")
    # Python or the C library does not know `CS_GNU_LIBC_VERSION`.
    except (AttributeError, ValueError, OSError):
        found = None
    if found is None:
        sys.exit(
            "gpumon: this system has no glibc, and gpumon needs it, because NVIDIA's driver "
            "libraries do. Use a "
            "distribution with glibc (Debian, Ubuntu, RHEL, ...) instead of one with musl "
            "(Alpine), also in containers"
        )
