/**
 * The cost of a run of a notebook's cell, for its kernel and all processes that the kernel started,
 * and requests to the server about it.
 */

import type { Cell, KernelCost, StoredCost } from '../wire';
import type { CellExecution } from './cell-log';
import { readJsonResponse, REQUEST_HEADERS, type Request } from './request';

export interface CellCost extends Omit<StoredCost, 'version' | 'gpus' | 'run'> {
  started_ms: number;
  ended_ms: number;
  /** The indexes of the GPUs that the kernel used. */
  gpus: readonly number[];
}

/**
 * The limits below which a run is not worth showing: its duration, its GPU time and its change of
 * memory.
 */
const MIN_DURATION_S = 0.5;
const MIN_GPU_S = 0.01;
const MIN_CHANGE_BYTES = 64 * 1024 ** 2;

/**
 * Returns whether a run used enough of a GPU to be worth showing. The change of memory is unknown
 * if the server started during the run or the kernel ended with the run; in this case the peak is
 * used instead.
 */
export function isWorthShowing(cost: CellCost): boolean {
  const { duration_s, gpu_s, memory_change_bytes, peak_memory_bytes } = cost;
  const computed = duration_s >= MIN_DURATION_S && (gpu_s ?? Infinity) >= MIN_GPU_S;
  return computed || Math.abs(memory_change_bytes ?? peak_memory_bytes ?? 0) >= MIN_CHANGE_BYTES;
}

/**
 * Returns the cost of a cell, or `null` if the cell used no GPU. `shared` in the cost states
 * whether others also used the GPUs.
 */
export function costOfCell({ cost }: KernelCost): CellCost | null {
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

/** Converts the cost of a cell from the server's history, whose API uses other names. */
export function costFromHistory(cell: Cell): CellCost {
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

/**
 * Sends the cost of a cell to the server, which sends it to all clients and keeps it in its
 * history. Fails silently if the server is too old or does not allow it.
 */
export async function recordCell(execution: CellExecution, request: Request): Promise<void> {
  const { notebook, kernelId, cellId, count, cost } = execution;
  const cell: Cell = {
    notebook,
    kernel_id: kernelId,
    cell_id: cellId,
    execution_count: count,
    started_ms: Math.round(cost.started_ms),
    ended_ms: Math.round(cost.ended_ms),
    gpus: [...cost.gpus],
    gpu_ms: cost.gpu_s === null ? null : cost.gpu_s * 1000,
    peak_bytes: cost.peak_memory_bytes,
    change_bytes: cost.memory_change_bytes,
    joules: cost.energy_joules,
    shared: cost.shared,
  };
  await request('api/v1/cells', {
    method: 'POST',
    headers: REQUEST_HEADERS,
    body: JSON.stringify(cell),
  }).catch(() => null);
}

/**
 * Returns the cost of a kernel in a span, or until now if `to_ms` is `null`. For a finished span,
 * the server answers when the cost is final. Returns `null` if the server does not answer or is too
 * old.
 */
export async function requestCost(
  kernelId: string,
  from_ms: number,
  to_ms: number | null,
  request: Request,
): Promise<KernelCost | null> {
  const query = new URLSearchParams({ kernel_id: kernelId, from_ms: String(from_ms) });
  if (to_ms !== null) {
    query.set('to_ms', String(to_ms));
  }
  const { json } = await readJsonResponse(request(`api/v1/cost?${query.toString()}`));
  return json as KernelCost | null;
}
