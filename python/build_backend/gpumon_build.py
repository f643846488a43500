"""The build backend of the wheel (PEP 517): builds what npm builds and what gpumon tells of itself,
then lets maturin do the rest.
"""

import os
from pathlib import Path

import gpumon_frontend
import gpumon_index
import gpumon_libc
import gpumon_share
import maturin
from maturin import get_requires_for_build_sdist

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


# How maturin calls Cargo.
os.environ.setdefault("MATURIN_PEP517_ARGS", f"--profile {gpumon_share.PROFILE}")


def _after(*steps):
    """Make a wrapper for hooks that first takes these steps."""

    def wrap(hook):
        def build(*args, **kwargs):
            for step in steps:
                step()
            return hook(*args, **kwargs)

        return build

    return wrap


# The first that an installer asks.
get_requires_for_build_wheel = _after(gpumon_libc.check)(maturin.get_requires_for_build_wheel)
get_requires_for_build_editable = _after(gpumon_libc.check)(maturin.get_requires_for_build_editable)

# Maturin reads the README and the folder of the page and the extension in all of these.
_after_frontend = _after(gpumon_index.write_readme, gpumon_frontend.build_if_needed)
# The page goes into the program, and the program tells the rest.
_after_program = _after(
    gpumon_libc.check,
    gpumon_index.write_readme,
    gpumon_frontend.build_if_needed,
    gpumon_share.build,
)


def _with_addresses(add_addresses, hook):
    """Wrap a hook: add the addresses of the project to the file that it writes into a folder."""

    def build(folder, *args, **kwargs):
        name = hook(folder, *args, **kwargs)
        add_addresses(Path(folder, name), gpumon_index.repository())
        return name

    return build


build_wheel = _after_program(
    _with_addresses(gpumon_index.add_addresses_to_wheel, maturin.build_wheel)
)
build_editable = _after_program(
    _with_addresses(gpumon_index.add_addresses_to_wheel, maturin.build_editable)
)
build_sdist = _after_frontend(maturin.build_sdist)
prepare_metadata_for_build_wheel = _after_frontend(
    _with_addresses(
        gpumon_index.add_addresses_to_metadata, maturin.prepare_metadata_for_build_wheel
    )
)
prepare_metadata_for_build_editable = _after_frontend(
    _with_addresses(
        gpumon_index.add_addresses_to_metadata, maturin.prepare_metadata_for_build_editable
    )
)
