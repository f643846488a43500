"""Shows what a GPU does, where people work.

The program itself is the ``gpumon`` command, which comes in the same wheel; this package finds it and introduces it to
Jupyter (``gpumon.jupyter``).
"""

from gpumon._find import GpumonNotFound, find_gpumon_bin

__all__ = ["GpumonNotFound", "find_gpumon_bin"]
