/** Tells the server what a cell took. */

import type { Cell } from '../wire';
import type { CellExecution } from './cell-log';
import { OWN_HEADERS, type Request } from './request';

/**
 * Has the server tell it to everybody, and keep it in its history. A server that does not let this client do so, or does
 * not know how, keeps none.
 */
export async function record(execution: CellExecution, request: Request): Promise<void> {
  const { notebook, kernelId, cellId, count, cost } = execution;
  const { gpus, ...numbers } = cost;
  const ids = { notebook, kernel_id: kernelId, cell_id: cellId, execution_count: count };
  const cell: Cell = { ...ids, ...numbers, gpus: [...gpus] };
  for (const key of ['started_ms', 'ended_ms'] as const) {
    cell[key] = Math.round(cell[key]);
  }
  await request('api/v1/cells', {
    method: 'POST',
    headers: OWN_HEADERS,
    body: JSON.stringify(cell),
  }).catch(() => null);
}
