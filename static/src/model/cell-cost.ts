/** The cost of a run of a notebook's cell, for its kernel and all that the kernel has started. */

import type { KernelCost, StoredCost } from '../wire';
import { answerOf, type Request } from './request';

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

/** Whether a run took enough of a GPU that somebody may want to know; one that only lasted took nothing. */
export function isWorthShowing({ duration_s, gpu_s, memory_change_bytes }: CellCost): boolean {
  const computed = duration_s >= BRIEF_S && (gpu_s ?? Infinity) >= LITTLE_GPU_S;
  return computed || Math.abs(memory_change_bytes ?? 0) >= LITTLE_BYTES;
}

/**
 * Returns the cost of a kernel in a span, or until now if `to_ms` is `null`. The answer about a
 * span is sent when it is final. Returns `null` if the server does not answer, or is too old to.
 */
export async function costOf(
  kernelId: string,
  from_ms: number,
  to_ms: number | null,
  request: Request,
): Promise<KernelCost | null> {
  const query = new URLSearchParams({ kernel_id: kernelId, from_ms: String(from_ms) });
  if (to_ms !== null) {
    query.set('to_ms', String(to_ms));
  }
  const { json } = await answerOf(request(`api/v1/cost?${query.toString()}`));
  return json as KernelCost | null;
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
