/** The cost of a run of a notebook's cell, for its kernel and all that the kernel has started. */

import type { Cell, KernelCost, StoredCost } from '../wire';

export interface CellCost extends Omit<StoredCost, 'version' | 'gpus' | 'run'> {
  started_ms: number;
  ended_ms: number;
  /** The GPUs that the kernel held, by index. */
  gpus: readonly number[];
}

/** A run that is shorter, computes less and changes no more than this is not worth a line. */
const BRIEF_S = 0.5;
const LITTLE_GPU_S = 0.01;
const LITTLE_BYTES = 64 * 1024 ** 2;

/**
 * Returns whether a run took enough of a GPU that somebody may want to know. If the change of
 * memory is not known, because the server started during the run or the kernel ended with it, the
 * peak counts in its place.
 */
export function isWorthShowing(cost: CellCost): boolean {
  const { duration_s, gpu_s, memory_change_bytes, peak_memory_bytes } = cost;
  const computed = duration_s >= BRIEF_S && (gpu_s ?? Infinity) >= LITTLE_GPU_S;
  return computed || Math.abs(memory_change_bytes ?? peak_memory_bytes ?? 0) >= LITTLE_BYTES;
}

/** Returns the cost of a cell, with what others used of its GPUs; `null` if no GPU was held. */
export function cellCost({ cost }: KernelCost): CellCost | null {
  const { started_ms, ended_ms, duration_s, gpu_s, shared, gpus, energy_joules } = cost;
  const { peak_memory_bytes, memory_change_bytes } = cost;
  return gpus.length === 0
    ? null
    : {
        started_ms,
        ended_ms,
        duration_s,
        gpu_s,
        peak_memory_bytes,
        memory_change_bytes,
        energy_joules: energy_joules?.most ?? null,
        shared,
        gpus: gpus.map(({ index }) => index),
      };
}

/** Returns the cost of a cell that the server remembers, whose API has other names for it. */
export function recordedCost(cell: Cell): CellCost {
  const { started_ms, ended_ms, gpus, gpu_ms, shared } = cell;
  return {
    started_ms,
    ended_ms,
    duration_s: (ended_ms - started_ms) / 1000,
    gpu_s: gpu_ms === null ? null : gpu_ms / 1000,
    peak_memory_bytes: cell.peak_bytes,
    memory_change_bytes: cell.change_bytes,
    energy_joules: cell.joules,
    shared,
    gpus,
  };
}
