/** Requests to the server about the cost of cells. */

import type { Cell, KernelCost } from '../wire';
import type { CellExecution } from './cell-log';
import { readJsonResponse, REQUEST_HEADERS, type Request } from './request';

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
