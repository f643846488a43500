"""Monitors NVIDIA GPUs in JupyterLab, the browser and the terminal.

The program is the ``gpumon`` command in the same wheel. This package finds it and registers it with Jupyter
(``gpumon.jupyter``).
"""

from gpumon._find import GpumonNotFound, find_gpumon_bin

__all__ = ["GpumonNotFound", "find_gpumon_bin"]
