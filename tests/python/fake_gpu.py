"""A simulated GPU with real processes. The processes allocate memory through the fake CUDA driver,
and the fake NVML library reports this memory.
"""

import json
import os
import subprocess
from pathlib import Path

import gpumon
from program import LIBRARY, fake_nvml_variables

CUDA = LIBRARY.with_name("libfake_cuda.so")

#: Code for a notebook cell or a program that allocates 256 MiB and keeps them.
HOLD = """
import ctypes, os
cuda = ctypes.CDLL(os.environ["GPUMON_LIBCUDA"])
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context) and \
not cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(256 << 20))
"""
HELD_BYTES = 256 << 20


def fake_gpu_variables(folder: "str | Path") -> "dict[str, str]":
    """Return environment variables that give gpumon and the programs that allocate memory the same
    simulated GPU. No other processes are on this GPU.
    """
    if not CUDA.exists():
        raise FileNotFoundError(f"{CUDA} is missing: run `make fake-library`")
    nvml = fake_nvml_variables(folder, '[[gpu]]\nindex = 0\nprofile = "idle"\n') | {
        "GPUMON_CONFIG": "none"
    }
    shown = subprocess.run(
        [gpumon.find_gpumon_bin(), "--json"], env=os.environ | nvml, capture_output=True, check=True
    )
    (board,) = json.loads(shown.stdout)["inventory"]["gpus"]
    scenario, state = Path(folder, "cuda.toml"), Path(folder, "state")
    scenario.write_text(f'devices = 1\nuuids = ["{board["uuid"]}"]\n')
    state.mkdir()
    return nvml | {
        "GPUMON_LIBCUDA": str(CUDA),
        "GPUMON_FAKE_CUDA_SCENARIO": str(scenario),
        "GPUMON_FAKE_GPU_STATE": str(state),
    }
