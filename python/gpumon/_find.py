"""Finds the program that was installed together with this package."""

from __future__ import annotations

import os
import sys
import sysconfig

from gpumon._errors import ProgramError

NAME = "gpumon"

#: The name under which this package is installed. The package called gpumon is another program.
DISTRIBUTION = "jupyterlab-gpumon"

#: The command that reinstalls this package.
REINSTALL = f"`pip install --force-reinstall {DISTRIBUTION.replace('-', '_')}-*.whl`"

#: A command that removes the other package called gpumon, and restores the files that it shares
#: with this package.
REPLACE_OTHER = (
    f"run `pip uninstall {NAME} {DISTRIBUTION}`, then install the wheel of this program again: "
    f"{REINSTALL}"
)


class GpumonNotFound(ProgramError, FileNotFoundError):
    """The ``gpumon`` program is not in any of the folders where an installer puts it."""


def find_other_package_version() -> str | None:
    """Return the version of the other package called gpumon if it is in the same folder as this
    package; `None` if it is not.

    That package is another program, with files of the same names: `gpumon/__init__.py` and the
    command `gpumon`. The package that is installed last replaces these files of the other, and
    uninstalling either removes them.
    """
    try:
        entries = os.listdir(_package_root())
    # This package is in an archive. The other package cannot be in the same archive.
    except OSError:
        return None
    for entry in entries:
        name, kind = os.path.splitext(entry)
        if name.startswith(f"{NAME}-") and kind in (".dist-info", ".egg-info"):
            return name.split("-")[1]
    return None


def describe_other_package(version: str) -> str:
    """Return a sentence that reports the other package called gpumon and how to remove it."""
    return (
        f"the package {NAME} {version}, which is another program with files of the same names, is "
        f"also installed in {_package_root()}: {REPLACE_OTHER}"
    )


def find_gpumon_bin() -> str:
    """Return the path of the ``gpumon`` program.

    The search starts in the environment of the running Python and continues outwards. It never uses
    ``PATH``, where another version might come first. Scripts are skipped: the other package called
    gpumon may be in one of these folders even if it is not in the folder of this package.

    Raises:
        GpumonNotFound: the program was not found. The message names the searched folders and the
            remedy.
    """
    candidates = [os.path.join(folder, NAME) for folder in dict.fromkeys(_script_folders())]
    programs = [path for path in candidates if os.path.isfile(path) and os.access(path, os.X_OK)]
    for path in programs:
        if not is_script(path):
            return path
    other = find_other_package_version()
    if other is not None:
        raise GpumonNotFound(describe_other_package(other))
    if programs:
        raise GpumonNotFound(
            f"{programs[0]} is a script of another program with the same name, such as the "
            f"package {NAME} on PyPI: {REPLACE_OTHER}"
        )
    searched = "".join(f"\n  {path}" for path in candidates)
    raise GpumonNotFound(
        f"the gpumon program is missing: reinstall its wheel with {REINSTALL}. These files were "
        f"not found:{searched}"
    )


def is_script(path: str) -> bool:
    """Return whether a file starts like a script. The other package's program is a script; this
    package's is not.
    """
    try:
        with open(path, "rb") as file:
            return file.read(2) == b"#!"
    # A file that cannot be read is not a script: Python must be able to read a script to run it.
    except OSError:
        return False


def _package_root() -> str:
    return os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def _script_folders() -> list[str]:
    package_root = _package_root()
    return [
        sysconfig.get_path("scripts"),
        # A virtual environment that can see the packages of the base installation can also use the
        # base installation's program.
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
