"""Finds the program that was installed together with this package."""

from __future__ import annotations

import os
import sys
import sysconfig

from gpumon._errors import ProgramError

NAME = "gpumon"


class GpumonNotFound(ProgramError, FileNotFoundError):
    """The ``gpumon`` program is in none of the places where an installer puts it."""


def find_gpumon_bin() -> str:
    """Return the path of the ``gpumon`` program.

    The search goes from the environment of the running Python outwards, and never through ``PATH``, where another
    version might stand in front.

    Raises:
        GpumonNotFound: with the places that were searched, and what to do.
    """
    candidates = [os.path.join(folder, NAME) for folder in dict.fromkeys(_folders())]
    for path in candidates:
        if os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    searched = "".join(f"\n  {path}" for path in candidates)
    raise GpumonNotFound(
        f"the gpumon program is missing; reinstall it with `pip install --force-reinstall gpumon`. Searched:{searched}"
    )


def _folders() -> list[str]:
    package_root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    return [
        sysconfig.get_path("scripts"),
        # A virtual environment that sees the packages of the Python it was made from.
        sysconfig.get_path("scripts", vars={"base": sys.base_prefix}),
        # pip install --prefix DIR: this package is in DIR/lib/python3.x/site-packages.
        os.path.normpath(os.path.join(package_root, "..", "..", "..", "bin")),
        # pip install --target DIR: this package is in DIR itself.
        os.path.join(package_root, "bin"),
        sysconfig.get_path("scripts", scheme=_user_scheme()),
    ]


def _user_scheme() -> str:
    if sys.version_info >= (3, 10):
        return sysconfig.get_preferred_scheme("user")
    return "posix_user"
