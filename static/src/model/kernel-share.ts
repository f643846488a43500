/** The use of GPUs by a notebook's kernel in one sample. */

import type { GpuSample, Process, Sample } from '../wire';
import { valueOf } from './reading';

/** The use of all GPUs by a kernel and all processes that it started. */
export interface KernelShare {
  gpus: readonly number[];
  bytes: number | null;
  /** The GPU time in percent. Each GPU contributes up to 100, so the sum may exceed 100. */
  sm_percent: number | null;
}

export function computeKernelShare(sample: Sample, kernelId: string): KernelShare {
  const gpus: number[] = [];
  let bytes: number | null = null;
  let sm_percent: number | null = null;
  for (const gpu of sample.gpus) {
    const own = processesOf(gpu, kernelId);
    if (own.length === 0) {
      continue;
    }
    gpus.push(gpu.index);
    bytes = addUnlessNull(bytes, sum(own.map((process) => valueOf(process.memory_bytes))));
    // Kernels of several processes may overlap, so the sum is limited to 100 percent of a GPU.
    const busy = sum(own.map((process) => valueOf(process.sm_percent)));
    sm_percent = addUnlessNull(sm_percent, busy === null ? null : Math.min(100, busy));
  }
  return { gpus, bytes, sm_percent };
}

/** Returns the processes on a GPU that belong to the kernel. */
function processesOf(gpu: GpuSample, kernelId: string): Process[] {
  const all = gpu.health.state === 'ok' ? (valueOf(gpu.processes) ?? []) : [];
  return all.filter((process) => valueOf(process.owner)?.notebook?.kernel_id === kernelId);
}

function sum(values: readonly (number | null)[]): number | null {
  return values.reduce<number | null>(addUnlessNull, null);
}

/** Adds two values. A missing value counts as 0, unless both are missing. */
function addUnlessNull(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : a + b;
}
