/** In which order GPUs and nodes are shown. */

import { modelOf, USE, type Columns } from './columns';
import type { Nodes } from './nodes';

export const SORTS = [
  'worst',
  'name',
  'utilization',
  'memory',
  'power',
  'temperature',
  'idle',
  'model',
  'owner',
] as const;
export type SortKey = (typeof SORTS)[number];

export interface Sort {
  key: SortKey;
  /** Whether it is the other way round than usual: names run forward, and numbers begin with the highest. */
  reversed: boolean;
}

export const WORST_FIRST: Sort = { key: 'worst', reversed: false };

/** How a row is: the lower, the worse. Within a rank, what has more load comes first. */
export function rankOf({ use, severity }: Columns, row: number): number {
  switch (use[row]) {
    case USE.lost:
      return 0;
    case USE.unknown:
      return 1;
    default:
      break;
  }
  const worst = severity[row] ?? 0;
  if (worst >= 2) {
    return worst === 2 ? 3 : 2;
  }
  return use[row] === USE.idle ? 4 : worst === 1 ? 5 : 6;
}

/** The rows in order; of equals, in that of nodes and indices. */
export function rowOrder(columns: Columns, { key, reversed }: Sort, names: Names): Uint32Array {
  const { readings, node, index, count } = columns;
  const natural = (a: number, b: number): number =>
    (node[a] ?? 0) - (node[b] ?? 0) || (index[a] ?? 0) - (index[b] ?? 0);
  if (key === 'name') {
    const places = names.nodes(columns);
    return sorted(count, reversed, (row) => places[node[row] ?? 0] ?? 0, natural);
  }
  if (key === 'model') {
    const places = placesOf(columns.models);
    const models = new Map(columns.models.map((name, i) => [name, places[i] ?? 0]));
    return sorted(
      count,
      reversed,
      (row) => models.get(modelOf(columns, row) ?? '') ?? NaN,
      natural,
    );
  }
  if (key === 'owner') {
    const places = placesOf(columns.fleet.owners.map(({ user, id }) => user ?? id));
    return sorted(count, reversed, (row) => places[columns.ownersOf(row)[0] ?? -1] ?? NaN, natural);
  }
  const load = (row: number): number => readings.utilization[row] ?? NaN;
  const keys: Record<Exclude<SortKey, 'name' | 'model' | 'owner'>, (row: number) => number> = {
    worst: (row) => rankOf(columns, row) - loadOf(load(row)) / 1000,
    utilization: (row) => -load(row),
    memory: (row) => -(readings.memoryUsed[row] ?? NaN),
    power: (row) => -(readings.power[row] ?? NaN),
    temperature: (row) => -(readings.temperature[row] ?? NaN),
    idle: (row) => -(columns.idle_s[row] ?? NaN),
  };
  return sorted(count, reversed, keys[key], natural);
}

/** The nodes in order, by the same as their GPUs. */
export function nodeOrder(
  columns: Columns,
  nodes: Nodes,
  { key, reversed }: Sort,
  names: Names,
): Uint32Array {
  const natural = (a: number, b: number): number => a - b;
  if (key === 'name' || key === 'model' || key === 'owner') {
    const places = names.nodes(columns);
    return sorted(nodes.count, reversed, (node) => places[node] ?? 0, natural);
  }
  const keys: Record<Exclude<SortKey, 'name' | 'model' | 'owner'>, (node: number) => number> = {
    worst: (node) => (nodes.rank[node] ?? 0) - loadOf(nodes.utilization[node]) / 1000,
    utilization: (node) => -(nodes.utilization[node] ?? NaN),
    memory: (node) => -(nodes.memoryUsed[node] ?? NaN),
    power: (node) => -(nodes.power[node] ?? NaN),
    temperature: (node) => -(nodes.temperature[node] ?? NaN),
    idle: (node) => -(nodes.idle_s[node] ?? NaN),
  };
  return sorted(nodes.count, reversed, keys[key], natural);
}

/** The places of nodes by their names, numbers in them counted as such; kept as long as the names are the same. */
export class Names {
  private of: readonly string[] = [];
  private places: Uint32Array = new Uint32Array();

  nodes({ nodeNames }: Columns): Uint32Array {
    if (nodeNames.length !== this.of.length || nodeNames.some((name, i) => name !== this.of[i])) {
      this.of = nodeNames;
      this.places = placesOf(nodeNames);
    }
    return this.places;
  }
}

function placesOf(names: readonly string[]): Uint32Array {
  const { compare } = new Intl.Collator(undefined, { numeric: true });
  const order = names.map((_, i) => i).sort((a, b) => compare(names[a] ?? '', names[b] ?? ''));
  const places = new Uint32Array(names.length);
  order.forEach((place, i) => (places[place] = i));
  return places;
}

/** What is not known is no load. */
function loadOf(utilization = NaN): number {
  return Number.isNaN(utilization) ? 0 : utilization;
}

/** What has no value comes last, whichever way the others run. */
function sorted(
  count: number,
  reversed: boolean,
  keyOf: (place: number) => number,
  natural: (a: number, b: number) => number,
): Uint32Array {
  const sign = reversed ? -1 : 1;
  const keys = Float64Array.from({ length: count }, (_, place) => {
    const key = keyOf(place) * sign;
    return Number.isNaN(key) ? Infinity : key;
  });
  return Uint32Array.from({ length: count }, (_, place) => place).sort((a, b) => {
    const [x = 0, y = 0] = [keys[a], keys[b]];
    return x === y ? natural(a, b) : x < y ? -1 : 1;
  });
}
