/** Programs that kernels run on a real GPU. They also measure their own use of the GPU. */

/**
 * Code that defines `held`, which returns the GPU memory of this process including its CUDA
 * context, and `tell`, which prints results as JSON.
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
   * Allocates more and more memory and frees most of it. Prints the peak in bytes, including the
   * CUDA context.
   */
  peak: string;
  /** Computes for five seconds. Prints the energy in joules, as measured by the GPU's counter. */
  energy: string;
  /** Requests more memory than the GPU has. */
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

/** Frameworks for which only the out-of-memory error is tested. */
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
