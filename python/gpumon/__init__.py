"""Monitors NVIDIA GPUs in JupyterLab, the browser and the terminal, and from Python.

Measure the GPU use of a part of a program:

>>> import gpumon
>>> with gpumon.measure("train") as m:
...     pass
>>> m.duration_s < 60
True

`snapshot` returns the current readings, `stream` iterates over new readings, `history` returns past
readings, and `mark` adds a mark at the current time. ``%load_ext gpumon`` adds ``%gpu`` and
``%%gpu`` to IPython and notebooks.

The ``gpumon`` command in the same wheel does the measuring. This package starts it when it is first
needed, and registers it with Jupyter (``gpumon.jupyter``).
"""

from __future__ import annotations

from gpumon._errors import (
    GpumonError,
    GpumonWarning,
    MeasurementError,
    ProgramError,
    RequestError,
)
from gpumon._find import (
    DISTRIBUTION,
    GpumonNotFound,
    describe_other_package,
    find_gpumon_bin,
    find_other_package_version,
)

#: Type checkers treat a variable with this name as `True`. Importing it from `typing` would take
#: longer than importing the rest of this module.
TYPE_CHECKING = False

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from gpumon._cost import (
        CellRun,
        Condition,
        Cost,
        Energy,
        GpuCost,
        LimitShare,
        LimitSummary,
        Spread,
        StoredCost,
    )
    from gpumon._history import GpuHistory, History, Series, history
    from gpumon._measure import mark, measure
    from gpumon._measurement import Measurement
    from gpumon._snapshot import Gpu, Process, Snapshot
    from gpumon._stream import Stream, snapshot, stream

    __version__: str

__all__ = [
    "CellRun",
    "Condition",
    "Cost",
    "Energy",
    "Gpu",
    "GpuCost",
    "GpuHistory",
    "GpumonError",
    "GpumonNotFound",
    "GpumonWarning",
    "History",
    "LimitShare",
    "LimitSummary",
    "Measurement",
    "MeasurementError",
    "Process",
    "ProgramError",
    "RequestError",
    "Series",
    "Snapshot",
    "Spread",
    "StoredCost",
    "Stream",
    "find_gpumon_bin",
    "history",
    "mark",
    "measure",
    "snapshot",
    "stream",
]

#: These modules are only imported when they are used, because every Jupyter server imports this
#: package at startup.
_MODULES = {
    "_cost": [
        "CellRun", "Condition", "Cost", "Energy", "GpuCost", "LimitShare", "LimitSummary", "Spread",
        "StoredCost",
    ],  # fmt: skip
    "_history": ["GpuHistory", "History", "Series", "history"],
    "_measure": ["mark", "measure"],
    "_measurement": ["Measurement"],
    "_snapshot": ["Gpu", "Process", "Snapshot"],
    "_stream": ["Stream", "snapshot", "stream"],
}

if not TYPE_CHECKING:

    def __getattr__(name):
        if name == "__version__":
            import importlib.metadata

            try:
                version = importlib.metadata.version(DISTRIBUTION)
            # The package was imported from a folder, without being installed.
            except importlib.metadata.PackageNotFoundError:
                raise AttributeError(
                    f"module 'gpumon' has no attribute {name!r}: the package is not installed"
                ) from None
            globals()[name] = version
            return version
        for module, names in _MODULES.items():
            if name in names:
                import importlib

                value = globals()[name] = getattr(importlib.import_module(f"gpumon.{module}"), name)
                return value
        raise AttributeError(f"module 'gpumon' has no attribute {name!r}")

    def __dir__():
        return [*__all__, *globals()]


_other_version = find_other_package_version()
if _other_version is not None:
    import warnings

    warnings.warn(describe_other_package(_other_version), GpumonWarning, stacklevel=2)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Add the magics ``%gpu`` and ``%%gpu``. ``%load_ext gpumon`` calls this function."""
    from gpumon._ipython import load_magics

    load_magics(shell)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """Stop showing the lines that ``%gpu on`` adds below cells. ``%unload_ext gpumon`` calls this
    function.
    """
    from gpumon._ipython import unload_magics

    unload_magics(shell)
