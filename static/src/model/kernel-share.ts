/** What a notebook's kernel has of the GPUs at one moment. */

import type { GpuSample, Process, Sample } from '../wire';
import { valueOf } from './reading';

/** What one sample says of a kernel and of all it has started, over all GPUs. */
export interface KernelShare {
  gpus: readonly number[];
  bytes: number | null;
  /** Of one GPU's time, 0 to 100 for each GPU. */
  sm_percent: number | null;
}

export function shareOf(sample: Sample, kernelId: string): KernelShare {
  const gpus: number[] = [];
  let bytes: number | null = null;
  let sm_percent: number | null = null;
  for (const gpu of sample.gpus) {
    const own = processesOf(gpu, kernelId);
    if (own.length === 0) {
      continue;
    }
    gpus.push(gpu.index);
    bytes = plus(bytes, sum(own.map((process) => valueOf(process.memory_bytes))));
    // Kernels of several processes may overlap: a GPU has no more than all of its time.
    const busy = sum(own.map((process) => valueOf(process.sm_percent)));
    sm_percent = plus(sm_percent, busy === null ? null : Math.min(100, busy));
  }
  return { gpus, bytes, sm_percent };
}

/** Returns the kernel's processes on a GPU. */
function processesOf(gpu: GpuSample, kernelId: string): Process[] {
  const all = gpu.health.state === 'ok' ? (valueOf(gpu.processes) ?? []) : [];
  return all.filter((process) => valueOf(process.owner)?.notebook?.kernel_id === kernelId);
}

function sum(values: readonly (number | null)[]): number | null {
  return values.reduce<number | null>(plus, null);
}

/** What is not known adds nothing. */
function plus(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : a + b;
}
