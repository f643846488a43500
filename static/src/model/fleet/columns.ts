/**
 * A fleet as it is shown: columns of numbers that thousands of rows are quickly sorted and filtered
 * by.
 */

import { plainText } from '../../lib/text';
import type { Fleet, FleetCondition, FleetOwner, FleetSums, GpuState } from '../../wire';

/** The names of machines and GPUs are no longer than this. */
const NAME_LENGTH = 120;
/** The rank of a GPU about which nothing is known. */
const UNKNOWN_RANK = 1;

/** The severity of critical conditions. */
export const CRITICAL = 3;

/** The readings that are shown by the ids of their fields. */
export const FIELDS = {
  utilization: 'utilization.gpu_percent',
  memoryUsed: 'memory.used_bytes',
  memoryTotal: 'memory.total_bytes',
  power: 'power.draw_watts',
  powerLimit: 'power.limit_watts',
  temperature: 'temperature.gpu_celsius',
} as const;

/** Readings of GPUs or of several GPUs together; NaN if unknown. */
export type Readings = Record<keyof typeof FIELDS, Float64Array>;

/** Values that GPUs, nodes and whole fleets have in common. */
export interface Measures {
  count: number;
  readings: Readings;
  /** How urgent each is: the lower, the worse. */
  rank: ArrayLike<number>;
  /** For how long each has been idle while it is held; NaN where it is not. */
  idle_s: Float64Array;
}

/** The sums of several GPUs: of each node, or of all that are shown. */
export interface Sums extends Measures {
  gpus: readonly number[];
  states: Partial<Record<GpuState, ArrayLike<number>>>;
  /** How many GPUs report each reading, by the ids of their fields. */
  reporting: Partial<Record<string, ArrayLike<number>>>;
}

export interface Columns extends Measures {
  fleet: Fleet;
  /** Whether a row is a GPU, and not a node. */
  byGpu: boolean;
  /** How many rows there are. GPUs that the fleet does not list have rows behind the others. */
  count: number;
  node: Uint32Array;
  index: Uint32Array;
  state: readonly GpuState[];
  /** Of the worst condition: 0 without one, 3 if critical. */
  severity: Uint8Array;
  /** NaN where it is not told. */
  processes: Float64Array;
  nodes: Sums;
  totals: Sums;
  /** The names of nodes and GPUs, fit to be shown. */
  nodeNames: readonly string[];
  models: readonly string[];
  /** The places of the owners that hold a row. */
  ownersOf: (row: number) => readonly number[];
  conditionsOf: (row: number) => readonly FleetCondition[];
  owner: (place: number) => FleetOwner | undefined;
  /** How many GPUs a row stands for: none, where a node has never told how many it has. */
  gpusOf: (row: number) => number;
  /** The rows of a node, by index. */
  rowsOf: (node: number) => Uint32Array;
}

const NONE: readonly never[] = [];
/** The sums of no GPUs. */
export const NO_SUMS: FleetSums = {
  gpus: [],
  states: {},
  rank: [],
  readings: {},
  reporting: {},
  idle_holding_s: [],
};

/** The fleet until it is read. */
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
  const owners = lists(
    fleet.holds,
    ({ gpu }) => gpu,
    ({ owner }) => owner,
  );
  const conditions = lists(
    fleet.conditions,
    ({ gpu }) => gpu,
    (condition) => condition,
  );
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
    ownersOf: (row) => owners.get(row) ?? NONE,
    conditionsOf: (row) => conditions.get(row) ?? NONE,
    owner: (place) => fleet.owners[place],
    gpusOf: (row) => {
      const of = nodes.gpus[node[row] ?? 0] ?? 0;
      return fleet.resolution === 'node' ? of : row < known ? 1 : Math.min(1, of);
    },
    rowsOf: rowsByNode(node, index, nodes.name.length),
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

/** A column of numbers; NaN for what is unknown, and behind its end. */
function toColumn(values: readonly (number | null)[] = [], count: number): Float64Array {
  const column = new Float64Array(count).fill(NaN);
  values.forEach((value, row) => (column[row] = value ?? NaN));
  return column;
}

/** What a row is called: `node-0412 / 3`, or the node alone. */
export function rowName(columns: Columns, row: number): string {
  const name = columns.nodeNames[columns.node[row] ?? 0] ?? '';
  return columns.byGpu && columns.gpusOf(row) > 0 ? `${name} / ${columns.index[row] ?? 0}` : name;
}

/** Whether a row's GPU does not respond, or has a critical condition. */
export function isCritical({ fleet, state, severity, node }: Columns, row: number): boolean {
  const isGone = state[row] === 'unknown' && fleet.nodes.health[node[row] ?? 0] !== 'up';
  return state[row] === 'lost' || isGone || (severity[row] ?? 0) >= CRITICAL;
}

/** The name of a row's GPU; `null` where it is not told. */
export function modelOf({ fleet, models }: Columns, row: number): string | null {
  const place = fleet.gpus.model[row] ?? null;
  return place === null ? null : (models[place] ?? null);
}

function lists<T, V>(
  all: readonly T[],
  keyOf: (one: T) => number,
  valueOf: (one: T) => V,
): Map<number, V[]> {
  const map = new Map<number, V[]>();
  for (const one of all) {
    const list = map.get(keyOf(one));
    if (list === undefined) {
      map.set(keyOf(one), [valueOf(one)]);
    } else {
      list.push(valueOf(one));
    }
  }
  return map;
}

/** The rows in the order of nodes and indices, and where those of each node begin. */
function rowsByNode(
  node: Uint32Array,
  index: Uint32Array,
  nodes: number,
): (node: number) => Uint32Array {
  const rows = Uint32Array.from(node, (_, row) => row).sort(
    (a, b) => (node[a] ?? 0) - (node[b] ?? 0) || (index[a] ?? 0) - (index[b] ?? 0),
  );
  const begin = new Uint32Array(nodes + 1);
  node.forEach((place) => (begin[place + 1] = (begin[place + 1] ?? 0) + 1));
  for (let place = 0; place < nodes; place += 1) {
    begin[place + 1] = (begin[place + 1] ?? 0) + (begin[place] ?? 0);
  }
  return (place) => rows.subarray(begin[place], begin[place + 1]);
}
