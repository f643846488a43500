/** What kernels run on a real GPU, and what they say of it themselves. */

/**
 * Makes a context, and reckons what it takes besides the framework's own memory. Everything is told
 * as JSON.
 */
const BEGIN = `
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

/** A framework: cells that begin with it, take memory, and work. */
export interface Framework {
  name: string;
  module: string;
  begin: string;
  /** Takes ever more and gives most of it back; tells the peak with the context, in bytes. */
  peak: string;
  /** Works for five seconds; tells the energy by the GPU's counter, in joules. */
  energy: string;
  /** Asks for more than there is. */
  tooMuch: string;
}

const TAKE = (take: string): string => `
blocks = []
for _ in range(6):
    blocks.append(${take})
    time.sleep(0.4)
del blocks`;

const ENERGY = (step: string): string => `
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
    begin: `${BEGIN}
import torch
a = torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16)
a @ a
torch.cuda.synchronize()
context = held() - torch.cuda.memory_reserved()
tell(context=context)`,
    peak: `${TAKE('torch.empty(5 << 30, dtype=torch.uint8, device="cuda")')}
torch.cuda.empty_cache()
tell(peak=torch.cuda.max_memory_reserved() + context)`,
    energy: ENERGY('[a @ a for _ in range(20)]; torch.cuda.synchronize()'),
    tooMuch: 'torch.empty(500 << 30, dtype=torch.uint8, device="cuda")',
  },
  {
    name: 'CuPy',
    module: 'cupy',
    begin: `${BEGIN}
import cupy
a = cupy.random.rand(8192, 8192, dtype=cupy.float32)
a @ a
cupy.cuda.Device().synchronize()
pool = cupy.get_default_memory_pool()
context = held() - pool.total_bytes()
tell(context=context)`,
    peak: `${TAKE('cupy.empty(5 << 30, dtype=cupy.uint8)')}
peak = pool.total_bytes() + context
pool.free_all_blocks()
tell(peak=peak)`,
    energy: ENERGY('[a @ a for _ in range(4)]; cupy.cuda.Device().synchronize()'),
    tooMuch: 'cupy.empty(500 << 30, dtype=cupy.uint8)',
  },
];

/** Others, of which only the error is looked at. */
export const FAILING = [
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
