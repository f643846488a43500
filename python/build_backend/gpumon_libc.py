"""Refuses to build where the program could not do its work, before anything is fetched or built for
it.
"""

from __future__ import annotations

import os
import sys


def check() -> None:
    """End where this is not a Linux with glibc."""
    try:
        found = os.confstr("CS_GNU_LIBC_VERSION")
    # Unknown to Python, or to the C library.
    except (AttributeError, ValueError, OSError):
        found = None
    if found is None:
        sys.exit(
            "gpumon: this system has no glibc, and gpumon needs it, because NVIDIA's driver libraries do. Use a "
            "distribution with glibc (Debian, Ubuntu, RHEL, ...) instead of one with musl (Alpine), in a container too"
        )
