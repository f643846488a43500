/**
 * The displayed fleet as columns of numbers, which make sorting and filtering thousands of rows
 * fast.
 */

import { groupBy } from '../../lib/collections';
import { plainText } from '../../lib/text';
import type { Fleet, FleetCondition, FleetOwner, FleetSums, GpuState } from '../../wire';

/** The maximum length of displayed names of nodes and GPUs. */
const NAME_LENGTH = 120;
/** The rank of a GPU in an unknown state. */
const UNKNOWN_RANK = 1;

/** The severity of critical conditions. */
export const CRITICAL_SEVERITY = 3;

/** The displayed readings by their field IDs. */
export const FIELDS = {
  utilization: 'utilization.gpu_percent',
  memoryUsed: 'memory.used_bytes',
  memoryTotal: 'memory.total_bytes',
  power: 'power.draw_watts',
  powerLimit: 'power.limit_watts',
  temperature: 'temperature.gpu_celsius',
} as const;

/** The readings of single GPUs or of groups of GPUs. Unknown readings are NaN. */
export type Readings = Record<keyof typeof FIELDS, Float64Array>;

/** The measures that GPUs, nodes and whole fleets have in common. */
export interface Measures {
  count: number;
  readings: Readings;
  /** The rank of each row. The more urgent a row is, the lower is its rank. */
  rank: ArrayLike<number>;
  /**
   * The time in seconds for which each row has been idle while an owner holds it. NaN if the row is
   * not idle or no owner holds it.
   */
  idle_s: Float64Array;
}

/** The sums over several GPUs: of each node, or of all displayed GPUs. */
export interface Sums extends Measures {
  gpus: readonly number[];
  states: Partial<Record<GpuState, ArrayLike<number>>>;
  /** For each reading, how many of the GPUs report it. The keys are field IDs. */
  reporting: Partial<Record<string, ArrayLike<number>>>;
}

export interface Columns extends Measures {
  fleet: Fleet;
  /** Whether each row is a GPU instead of a node. */
  byGpu: boolean;
  /**
   * The number of rows. The last rows stand for GPUs that the fleet counts but does not list, for
   * example the GPUs of an unreachable node.
   */
  count: number;
  node: Uint32Array;
  index: Uint32Array;
  state: readonly GpuState[];
  /** The severity of the worst condition, from 0 for none to 3 for critical. */
  severity: Uint8Array;
  /** The number of processes; NaN if it is unknown. */
  processes: Float64Array;
  nodes: Sums;
  totals: Sums;
  /** The displayable names of nodes and GPUs. */
  nodeNames: readonly string[];
  models: readonly string[];
  /** Returns the indexes of the owners of a row. */
  ownersOf: (row: number) => readonly number[];
  conditionsOf: (row: number) => readonly FleetCondition[];
  owner: (place: number) => FleetOwner | undefined;
  /** Returns the number of GPUs in a row. It is 0 for a node that has never reported its GPUs. */
  gpusOf: (row: number) => number;
  /** Returns the rows of a node by its index. */
  rowsOf: (node: number) => Uint32Array;
}

const EMPTY_LIST: readonly never[] = [];
/** The sums over no GPUs. */
export const NO_SUMS: FleetSums = {
  gpus: [],
  states: {},
  rank: [],
  readings: {},
  reporting: {},
  idle_holding_s: [],
};

/** The fleet before it has been loaded. */
export const NO_FLEET: Fleet = {
  at_ms: 0,
  source: { kind: 'hosts', name: '' },
  state: 'loading',
  problems: [],
  refresh_s: 0,
  resolution: 'gpu',
  nodes: { name: [], health: [], reasons: {}, gpus: [], unopenable: {} },
  gpus: {
    node: [],
    index: [],
    model: [],
    models: [],
    health: [],
    readings: {},
    processes: [],
    idle_holding_s: [],
    state: [],
    rank: [],
    unlisted: [],
  },
  owners: [],
  holds: [],
  conditions: [],
  sums: NO_SUMS,
  totals: NO_SUMS,
  missing: {},
};

export function columnsOf(fleet: Fleet): Columns {
  const { gpus, nodes } = fleet;
  const known = gpus.node.length;
  const count = known + gpus.unlisted.length;
  const node = Uint32Array.from([...gpus.node, ...gpus.unlisted]);
  const unlisted = gpus.unlisted.map((place, i) => i - gpus.unlisted.indexOf(place));
  const index = Uint32Array.from([...gpus.index, ...unlisted]);
  const rank = new Uint8Array(count).fill(UNKNOWN_RANK);
  rank.set(gpus.rank);
  const holds = groupBy(fleet.holds, ({ gpu }) => gpu);
  const owners = new Map([...holds].map(([gpu, held]) => [gpu, held.map(({ owner }) => owner)]));
  const conditions = groupBy(fleet.conditions, ({ gpu }) => gpu);
  const severity = new Uint8Array(count);
  for (const condition of fleet.conditions) {
    severity[condition.gpu] = Math.max(severity[condition.gpu] ?? 0, condition.severity);
  }
  return {
    fleet,
    byGpu: fleet.resolution === 'gpu',
    count,
    node,
    index,
    readings: readingsOf(gpus.readings, count),
    rank,
    state: [...gpus.state, ...gpus.unlisted.map(() => 'unknown' as const)],
    severity,
    idle_s: toColumn(gpus.idle_holding_s, count),
    processes: toColumn(gpus.processes, count),
    nodes: sumsOf(fleet.sums),
    totals: sumsOf(fleet.totals),
    nodeNames: nodes.name.map((name) => plainText(name, NAME_LENGTH)),
    models: gpus.models.map((name) => plainText(name, NAME_LENGTH)),
    ownersOf: (row) => owners.get(row) ?? EMPTY_LIST,
    conditionsOf: (row) => conditions.get(row) ?? EMPTY_LIST,
    owner: (place) => fleet.owners[place],
    gpusOf: (row) => {
      const of = nodes.gpus[node[row] ?? 0] ?? 0;
      return fleet.resolution === 'node' ? of : row < known ? 1 : Math.min(1, of);
    },
    rowsOf: createNodeRowsLookup(node, index, nodes.name.length),
  };
}

function sumsOf({ gpus, states, rank, readings, reporting, idle_holding_s }: FleetSums): Sums {
  const count = gpus.length;
  return {
    count,
    readings: readingsOf(readings, count),
    rank,
    idle_s: toColumn(idle_holding_s, count),
    gpus,
    states,
    reporting,
  };
}

function readingsOf(
  readings: Partial<Record<string, readonly (number | null)[]>>,
  count: number,
): Readings {
  const columns = Object.entries(FIELDS).map(([key, id]) => [key, toColumn(readings[id], count)]);
  return Object.fromEntries(columns) as Readings;
}

/** Converts values to a column of `count` numbers. Missing values are NaN. */
function toColumn(values: readonly (number | null)[] = [], count: number): Float64Array {
  const column = new Float64Array(count).fill(NaN);
  values.forEach((value, row) => (column[row] = value ?? NaN));
  return column;
}

/** Returns the name of a row: `node-0412 / 3`, or only the node. */
export function rowName(columns: Columns, row: number): string {
  const name = columns.nodeNames[columns.node[row] ?? 0] ?? '';
  return columns.byGpu && columns.gpusOf(row) > 0 ? `${name} / ${columns.index[row] ?? 0}` : name;
}

/** Returns whether a row's GPU does not respond or has a critical condition. */
export function isCritical({ fleet, state, severity, node }: Columns, row: number): boolean {
  const isGone = state[row] === 'unknown' && fleet.nodes.health[node[row] ?? 0] !== 'up';
  return state[row] === 'lost' || isGone || (severity[row] ?? 0) >= CRITICAL_SEVERITY;
}

/** Returns the model name of a row's GPU, or `null` if it is unknown. */
export function modelOf({ fleet, models }: Columns, row: number): string | null {
  const place = fleet.gpus.model[row] ?? null;
  return place === null ? null : (models[place] ?? null);
}

/** Returns a function that compares two rows by node, then by GPU index. */
export function naturalOrder({
  node,
  index,
}: Pick<Columns, 'node' | 'index'>): (a: number, b: number) => number {
  return (a, b) => (node[a] ?? 0) - (node[b] ?? 0) || (index[a] ?? 0) - (index[b] ?? 0);
}

/** Returns a function that returns the rows of a node, ordered by GPU index. */
function createNodeRowsLookup(
  node: Uint32Array,
  index: Uint32Array,
  nodes: number,
): (node: number) => Uint32Array {
  const rows = Uint32Array.from(node, (_, row) => row).sort(naturalOrder({ node, index }));
  const begin = new Uint32Array(nodes + 1);
  node.forEach((place) => (begin[place + 1] = (begin[place + 1] ?? 0) + 1));
  for (let place = 0; place < nodes; place += 1) {
    begin[place + 1] = (begin[place + 1] ?? 0) + (begin[place] ?? 0);
  }
  return (place) => rows.subarray(begin[place], begin[place + 1]);
}
