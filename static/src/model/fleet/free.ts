/** Where there are free GPUs: so many with so much memory on one node. */

import { modelOf, type Columns } from './columns';

export interface Wanted {
  gpus: number;
  /** Of each GPU in all; 0 for any. */
  memory_bytes: number;
}

/** A node with free GPUs of one kind. */
export interface FreeNode {
  node: number;
  model: string | null;
  memory_bytes: number;
  /** The free ones, by their rows. */
  rows: readonly number[];
  /** How many GPUs the node has. */
  of: number;
}

/** A board with 80 GiB has a little less: what firmware takes of it is not counted. */
const TOLERANCE = 0.97;

/** Those that fit, the tightest first, so that whole nodes stay free for who needs them. */
export function freeNodes(
  columns: Columns,
  { gpus, memory_bytes }: Wanted,
  shown: Uint8Array | null,
): FreeNode[] {
  const found: FreeNode[] = [];
  for (let node = 0; node < columns.nodeNames.length; node += 1) {
    const all = columns.rowsOf(node);
    const byKind = new Map<string, FreeNode & { rows: number[] }>();
    for (const row of all) {
      const total = columns.readings.memoryTotal[row] ?? NaN;
      const of = columns.byGpu ? total : total / (columns.fleet.nodes.gpus[node] ?? NaN);
      const isFree = columns.state[row] === 'free' && (shown === null || shown[row] === 1);
      // Memory that nothing tells of is enough for whoever wants none in particular.
      if (!isFree || !(of >= memory_bytes * TOLERANCE || memory_bytes === 0)) {
        continue;
      }
      const model = modelOf(columns, row);
      const key = `${model ?? ''} ${Math.round(of / 1024 ** 3)}`;
      const kind = byKind.get(key) ?? { node, model, memory_bytes: of, rows: [], of: all.length };
      kind.rows.push(row);
      byKind.set(key, kind);
    }
    found.push(...[...byKind.values()].filter((kind) => freeOf(columns, kind) >= gpus));
  }
  return found.sort(
    (a, b) =>
      freeOf(columns, a) - freeOf(columns, b) || a.memory_bytes - b.memory_bytes || a.node - b.node,
  );
}

/** How many GPUs are free: a row of a node alone stands for all that it has. */
export function freeOf(columns: Columns, { node, rows }: FreeNode): number {
  return columns.byGpu ? rows.length : (columns.fleet.nodes.gpus[node] ?? 0);
}
