/** Executions of cells as the server keeps them, in the names that its API has for them. */

import type { Cell } from '../wire';
import type { CellCost } from './cell-cost';
import type { CellExecution } from './cell-log';
import { OWN_HEADERS, type Request } from './request';

/**
 * Has the server tell it to everybody, and keep it in its history. A server that does not let this client do so, or does
 * not know how, keeps none.
 */
export async function record(execution: CellExecution, request: Request): Promise<void> {
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
    headers: OWN_HEADERS,
    body: JSON.stringify(cell),
  }).catch(() => null);
}

/** Returns the cost of a cell that the server remembers. */
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
