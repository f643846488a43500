"""The build backend of the wheel (PEP 517): builds what npm builds, then lets maturin do the rest."""

import gpumon_frontend
import maturin
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)

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


def _after_frontend(hook):
    """Make a hook that runs once the page and the extension are there: maturin reads their folder in all of these."""

    def build(*args, **kwargs):
        gpumon_frontend.build_if_needed()
        return hook(*args, **kwargs)

    return build


build_wheel = _after_frontend(maturin.build_wheel)
build_sdist = _after_frontend(maturin.build_sdist)
build_editable = _after_frontend(maturin.build_editable)
prepare_metadata_for_build_wheel = _after_frontend(maturin.prepare_metadata_for_build_wheel)
prepare_metadata_for_build_editable = _after_frontend(maturin.prepare_metadata_for_build_editable)
