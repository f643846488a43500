/** The nodes of a fleet, summed up. */

import { USE, type Columns } from './columns';
import { rankOf } from './order';

export interface Nodes {
  count: number;
  /** How many GPUs each is known to have. */
  gpus: Uint32Array;
  /** GPUs by what they are at. */
  used: readonly Uint32Array[];
  /** The worst rank of its rows. */
  rank: Float64Array;
  /** Averages. */
  utilization: Float64Array;
  /** Sums. */
  memoryUsed: Float64Array;
  memoryTotal: Float64Array;
  power: Float64Array;
  powerLimit: Float64Array;
  /** The highest. */
  temperature: Float64Array;
  idle_s: Float64Array;
  processes: Float64Array;
}

export function nodesOf(columns: Columns): Nodes {
  const count = columns.nodeNames.length;
  const empty = (): Float64Array => new Float64Array(count).fill(NaN);
  const nodes: Nodes = {
    count,
    gpus: new Uint32Array(count),
    used: Object.values(USE).map(() => new Uint32Array(count)),
    rank: new Float64Array(count).fill(Infinity),
    utilization: empty(),
    memoryUsed: empty(),
    memoryTotal: empty(),
    power: empty(),
    powerLimit: empty(),
    temperature: empty(),
    idle_s: empty(),
    processes: empty(),
  };
  const known = new Uint32Array(count);
  const { readings } = columns;
  for (let row = 0; row < columns.count; row += 1) {
    const node = columns.node[row] ?? 0;
    const gpus = columns.gpusOf(row);
    nodes.gpus[node] = (nodes.gpus[node] ?? 0) + gpus;
    const used = nodes.used[columns.use[row] ?? USE.unknown];
    if (used !== undefined) {
      used[node] = (used[node] ?? 0) + gpus;
    }
    nodes.rank[node] = Math.min(nodes.rank[node] ?? Infinity, rankOf(columns, row));
    const utilization = readings.utilization[row] ?? NaN;
    if (!Number.isNaN(utilization)) {
      known[node] = (known[node] ?? 0) + 1;
      add(nodes.utilization, node, utilization);
    }
    add(nodes.memoryUsed, node, readings.memoryUsed[row]);
    add(nodes.memoryTotal, node, readings.memoryTotal[row]);
    add(nodes.power, node, readings.power[row]);
    add(nodes.powerLimit, node, readings.powerLimit[row]);
    add(nodes.processes, node, columns.processes[row]);
    highest(nodes.temperature, node, readings.temperature[row]);
    highest(nodes.idle_s, node, columns.idle_s[row]);
  }
  nodes.utilization.forEach((sum, node) => (nodes.utilization[node] = sum / (known[node] ?? NaN)));
  return nodes;
}

/** Adds what is known; a sum of nothing is not known. */
function add(column: Float64Array, place: number, value = NaN): void {
  const before = column[place] ?? NaN;
  column[place] = Number.isNaN(value) ? before : (Number.isNaN(before) ? 0 : before) + value;
}

function highest(column: Float64Array, place: number, value = NaN): void {
  const before = column[place] ?? NaN;
  column[place] = Number.isNaN(before) || value > before ? value : before;
}
