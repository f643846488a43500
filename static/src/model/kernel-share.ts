/** What a notebook's kernel has of the GPUs at one moment. */

import type { GpuSample, Process, Sample } from '../wire';
import { valueOf } from './reading';

/** What one sample says of a kernel and of all it has started, over all GPUs. */
export interface KernelShare {
  at_ms: number;
  gpus: readonly number[];
  bytes: number | null;
  /** Of one GPU's time, 0 to 100 for each GPU. */
  sm_percent: number | null;
  shared: boolean;
}

export function shareOf(sample: Sample, kernelId: string): KernelShare {
  const share = { at_ms: sample.at_ms, gpus: [] as number[], shared: false };
  let bytes: number | null = null;
  let sm_percent: number | null = null;
  for (const gpu of sample.gpus) {
    const { own, others } = divided(gpu, kernelId);
    if (own.length === 0) {
      continue;
    }
    share.gpus.push(gpu.index);
    share.shared ||= others > 0;
    bytes = plus(bytes, sum(own.map((process) => valueOf(process.memory_bytes))));
    // Kernels of several processes may overlap: a GPU has no more than all of its time.
    const busy = sum(own.map((process) => valueOf(process.sm_percent)));
    sm_percent = plus(sm_percent, busy === null ? null : Math.min(100, busy));
  }
  return { ...share, bytes, sm_percent };
}

/** The kernel's processes on a GPU, and how many others there are. */
function divided(gpu: GpuSample, kernelId: string): { own: Process[]; others: number } {
  const all = gpu.health.state === 'ok' ? (valueOf(gpu.processes) ?? []) : [];
  const own = all.filter((process) => valueOf(process.owner)?.notebook?.kernel_id === kernelId);
  return { own, others: all.length - own.length + (gpu.processes_omitted ?? 0) };
}

function sum(values: readonly (number | null)[]): number | null {
  return values.reduce<number | null>(plus, null);
}

/** What is not known adds nothing. */
function plus(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : a + b;
}
