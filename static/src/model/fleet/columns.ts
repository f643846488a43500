/** A fleet as it is shown: columns of numbers that thousands of rows are quickly sorted and filtered by. */

import { plainText } from '../../lib/text';
import type { Fleet, FleetCondition, FleetOwner } from '../../wire';

/** What a GPU is at. */
export const USE = { busy: 0, idle: 1, free: 2, lost: 3, unknown: 4 } as const;
export type Use = (typeof USE)[keyof typeof USE];

/** Where no processes are told, a GPU with more memory in use than this is held: the driver itself takes some. */
const HELD_BYTES = 1024 ** 3;
/** The names of machines and GPUs are no longer than this. */
const NAME_LENGTH = 120;

/** The readings that are shown; what nothing tells is NaN. */
export interface Readings {
  utilization: Float64Array;
  memoryUsed: Float64Array;
  memoryTotal: Float64Array;
  power: Float64Array;
  powerLimit: Float64Array;
  temperature: Float64Array;
}

export interface Columns {
  fleet: Fleet;
  /** Whether a row is a GPU, and not a node. */
  byGpu: boolean;
  /** How many rows there are. Nodes of which no GPU is known have rows, too, behind the others. */
  count: number;
  node: Uint32Array;
  index: Uint32Array;
  readings: Readings;
  use: Uint8Array;
  /** Of the worst condition: 0 without one, 3 if critical. */
  severity: Uint8Array;
  /** For how long each has been idle while it is held; NaN where it is not. */
  idle_s: Float64Array;
  /** NaN where it is not told. */
  processes: Float64Array;
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

/** Whoever exports metrics may write any number; what no board or node of boards can have is not shown. */
const PERCENT: Bounds = [0, 100];
const BYTES: Bounds = [0, 2 ** 55];
const WATTS: Bounds = [0, 1e7];
const CELSIUS: Bounds = [-60, 300];
const ANY: Bounds = [0, 1e12];

type Bounds = readonly [least: number, most: number];

const NONE: readonly never[] = [];

export function columnsOf(fleet: Fleet): Columns {
  const { gpus, nodes } = fleet;
  const known = gpus.node.length;
  const missing = nodesWithoutRows(fleet);
  const count = known + missing.length;
  const numbers = (
    values: readonly (number | null)[] | undefined,
    [least, most]: Bounds,
  ): Float64Array => {
    const column = new Float64Array(count).fill(NaN);
    for (let row = 0; row < known; row += 1) {
      const value = values?.[row] ?? NaN;
      column[row] = value >= least && value <= most ? value : NaN;
    }
    return column;
  };
  const node = new Uint32Array(count);
  const index = new Uint32Array(count);
  node.set(gpus.node);
  index.set(gpus.index);
  missing.forEach(([place, gpu], i) => {
    node[known + i] = place;
    index[known + i] = gpu;
  });
  const { readings } = gpus;
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
  const columns: Columns = {
    fleet,
    byGpu: fleet.resolution === 'gpu',
    count,
    node,
    index,
    readings: {
      utilization: numbers(readings['utilization.gpu_percent'], PERCENT),
      memoryUsed: numbers(readings['memory.used_bytes'], BYTES),
      memoryTotal: numbers(readings['memory.total_bytes'], BYTES),
      power: numbers(readings['power.draw_watts'], WATTS),
      powerLimit: numbers(readings['power.limit_watts'], WATTS),
      temperature: numbers(readings['temperature.gpu_celsius'], CELSIUS),
    },
    use: new Uint8Array(count),
    severity: new Uint8Array(count),
    idle_s: numbers(gpus.idle_holding_s, ANY),
    processes: numbers(gpus.processes, ANY),
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
  for (const { gpu, severity } of fleet.conditions) {
    columns.severity[gpu] = Math.max(columns.severity[gpu] ?? 0, severity);
  }
  for (let row = 0; row < count; row += 1) {
    columns.use[row] = useOf(columns, row);
  }
  return columns;
}

/** What a row is called: `node-0412 / 3`, or the node alone. */
export function rowName(columns: Columns, row: number): string {
  const name = columns.nodeNames[columns.node[row] ?? 0] ?? '';
  return columns.byGpu && columns.gpusOf(row) > 0 ? `${name} / ${columns.index[row] ?? 0}` : name;
}

/** The name of a row's GPU; `null` where it is not told. */
export function modelOf({ fleet, models }: Columns, row: number): string | null {
  const place = fleet.gpus.model[row] ?? null;
  return place === null ? null : (models[place] ?? null);
}

/** Nodes that list no GPU keep their place: as many rows as they last had GPUs, and one where that is not known. */
function nodesWithoutRows({ gpus, nodes, resolution }: Fleet): [node: number, index: number][] {
  const has = new Uint8Array(nodes.name.length);
  gpus.node.forEach((node) => (has[node] = 1));
  return nodes.name.flatMap((_, node) => {
    const many = resolution === 'node' ? 1 : Math.max(1, nodes.gpus[node] ?? 0);
    return has[node] === 1
      ? []
      : Array.from({ length: many }, (__, index): [number, number] => [node, index]);
  });
}

function useOf({ fleet, readings, processes, idle_s, ownersOf }: Columns, row: number): Use {
  const health = fleet.gpus.health[row];
  if (health !== 'ok') {
    return health === 'not_responding' ? USE.lost : USE.unknown;
  }
  if (!Number.isNaN(idle_s[row] ?? NaN)) {
    return USE.idle;
  }
  if (ownersOf(row).length > 0 || (readings.utilization[row] ?? NaN) > 0) {
    return USE.busy;
  }
  const many = processes[row] ?? NaN;
  const used = readings.memoryUsed[row] ?? NaN;
  if (Number.isNaN(many) && Number.isNaN(used)) {
    return USE.unknown;
  }
  return (Number.isNaN(many) ? used > HELD_BYTES : many > 0) ? USE.busy : USE.free;
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
