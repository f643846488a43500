/** The use of GPUs by a notebook's kernel in one sample. */

import type { GpuSample, Process, Sample } from '../wire';
import { valueOf } from './reading';

/** The use of all GPUs by a kernel and all processes that it started. */
export interface KernelShare {
  gpus: readonly number[];
  bytes: number | null;
  /** The GPU time in percent of one GPU: up to 100 for each GPU. */
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
    // Kernels of several processes may overlap, so the sum is limited to the whole time of a GPU.
    const busy = sum(own.map((process) => valueOf(process.sm_percent)));
    sm_percent = addUnlessNull(sm_percent, busy === null ? null : Math.min(100, busy));
  }
  return { gpus, bytes, sm_percent };
}

/** Returns the kernel's processes on a GPU. */
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
