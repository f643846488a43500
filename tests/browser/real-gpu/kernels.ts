/** The programs that kernels run on a real GPU, with their own measurements. */

/**
 * Creates a CUDA context and determines the memory that it uses in addition to the framework's. All
 * results are printed as JSON.
 */
const SETUP_CODE = `
import json, os, time
import pynvml
pynvml.nvmlInit()
gpu = pynvml.nvmlDeviceGetHandleByIndex(0)
def held():
    own = [p for p in pynvml.nvmlDeviceGetComputeRunningProcesses(gpu) if p.pid == os.getpid()]
    return own[0].usedGpuMemory
def tell(**figures):
    print(json.dumps(figures), flush=True)
`;

/** A framework with the code of cells that initialize it, allocate memory, and compute. */
export interface Framework {
  name: string;
  module: string;
  begin: string;
  /**
   * Allocates more and more memory and frees most of it. Prints the peak including the context, in
   * bytes.
   */
  peak: string;
  /** Computes for five seconds. Prints the energy by the GPU's counter, in joules. */
  energy: string;
  /** Requests more memory than exists. */
  tooMuch: string;
}

const makeMemoryCode = (take: string): string => `
blocks = []
for _ in range(6):
    blocks.append(${take})
    time.sleep(0.4)
del blocks`;

const makeEnergyCode = (step: string): string => `
before = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
end = time.time() + 5
while time.time() < end:
    ${step}
after = pynvml.nvmlDeviceGetTotalEnergyConsumption(gpu)
tell(joules=(after - before) / 1000)`;

export const FRAMEWORKS: readonly Framework[] = [
  {
    name: 'PyTorch',
    module: 'torch',
    begin: `${SETUP_CODE}
import torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
a @ a
torch.cuda.synchronize()
context = held() - torch.cuda.memory_reserved()
tell(context=context)`,
    peak: `${makeMemoryCode('torch.empty(5 << 30, dtype=torch.uint8, device="cuda")')}
torch.cuda.empty_cache()
tell(peak=torch.cuda.max_memory_reserved() + context)`,
    energy: makeEnergyCode('[a @ a for _ in range(20)]; torch.cuda.synchronize()'),
    tooMuch: 'torch.empty(500 << 30, dtype=torch.uint8, device="cuda")',
  },
  {
    name: 'CuPy',
    module: 'cupy',
    begin: `${SETUP_CODE}
import cupy
a = cupy.random.rand(8192, 8192, dtype=cupy.float32)
a @ a
cupy.cuda.Device().synchronize()
pool = cupy.get_default_memory_pool()
context = held() - pool.total_bytes()
tell(context=context)`,
    peak: `${makeMemoryCode('cupy.empty(5 << 30, dtype=cupy.uint8)')}
peak = pool.total_bytes() + context
pool.free_all_blocks()
tell(peak=peak)`,
    energy: makeEnergyCode('[a @ a for _ in range(4)]; cupy.cuda.Device().synchronize()'),
    tooMuch: 'cupy.empty(500 << 30, dtype=cupy.uint8)',
  },
];

/** Frameworks for which only the error is tested. */
export const FAILING_FRAMEWORKS = [
  {
    name: 'JAX',
    module: 'jax',
    code: `import os
os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "false"
import jax, jax.numpy as jnp
jnp.zeros((500 << 30,), dtype=jnp.uint8).block_until_ready()`,
  },
  {
    name: 'Numba',
    module: 'numba.cuda',
    code: `import numpy as np
from numba import cuda
cuda.device_array(500 << 30, dtype=np.uint8)`,
  },
] as const;
