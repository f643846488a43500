"""The build backend of the wheel (PEP 517). It builds the page, the JupyterLab extension, the
completions and the manual pages, and then calls maturin. On an unsupported system, it exits before
any dependency is downloaded or built.
"""

import os
import sys
from pathlib import Path

import gpumon_frontend
import gpumon_index
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


# The arguments that maturin passes to Cargo, unless the user has set others.
os.environ.setdefault("MATURIN_PEP517_ARGS", f"--profile {gpumon_share.PROFILE}")


def require_glibc() -> None:
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


def _run_steps_before_hook(*steps):
    """Return a decorator that runs `steps` before the hook."""

    def wrap(hook):
        def build(*args, **kwargs):
            for step in steps:
                step()
            return hook(*args, **kwargs)

        return build

    return wrap


# An installer calls these two hooks before all others, so it reports an unsupported system before
# it does anything else.
get_requires_for_build_wheel = _run_steps_before_hook(require_glibc)(
    maturin.get_requires_for_build_wheel
)
get_requires_for_build_editable = _run_steps_before_hook(require_glibc)(
    maturin.get_requires_for_build_editable
)

# maturin's hooks below read the README and the built files of the page and the extension.
_after_frontend = _run_steps_before_hook(gpumon_index.write_readme, gpumon_frontend.build_if_needed)
# The program embeds the page, so the page is built first. The program then writes its completions
# and manual pages.
_after_program = _run_steps_before_hook(
    require_glibc,
    gpumon_index.write_readme,
    gpumon_frontend.build_if_needed,
    gpumon_share.build,
)


def _add_addresses_after(add_addresses, hook):
    """Wrap a hook so that the project's URLs are added to the file that the hook writes."""

    def build(folder, *args, **kwargs):
        name = hook(folder, *args, **kwargs)
        add_addresses(Path(folder, name), gpumon_index.repository_address())
        return name

    return build


build_wheel = _after_program(
    _add_addresses_after(gpumon_index.add_addresses_to_wheel, maturin.build_wheel)
)
build_editable = _after_program(
    _add_addresses_after(gpumon_index.add_addresses_to_wheel, maturin.build_editable)
)
build_sdist = _after_frontend(maturin.build_sdist)
prepare_metadata_for_build_wheel = _after_frontend(
    _add_addresses_after(
        gpumon_index.add_addresses_to_metadata, maturin.prepare_metadata_for_build_wheel
    )
)
prepare_metadata_for_build_editable = _after_frontend(
    _add_addresses_after(
        gpumon_index.add_addresses_to_metadata, maturin.prepare_metadata_for_build_editable
    )
)
