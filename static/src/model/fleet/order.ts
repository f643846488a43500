/** The sort order of GPUs and nodes. */

import { modelOf, naturalOrder, type Columns, type Measures } from './columns';

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
  /**
   * Whether the default direction is reversed. By default, names are ascending and numbers are
   * descending.
   */
  reversed: boolean;
}

export const WORST_FIRST: Sort = { key: 'worst', reversed: false };

/** Returns the rows in order. Equal rows are ordered by node and GPU index. */
export function rowOrder(columns: Columns, { key, reversed }: Sort): Uint32Array {
  return sortRows(columns.count, reversed, rowKeyReader(columns, key), naturalOrder(columns));
}

/** Returns a function that returns the value by which a row is sorted. */
function rowKeyReader(columns: Columns, key: SortKey): (row: number) => number {
  switch (key) {
    case 'name':
      return (row) => columns.node[row] ?? 0;
    case 'model': {
      const places = alphabeticalRanks(columns.models);
      const models = new Map(columns.models.map((name, i) => [name, places[i] ?? 0]));
      return (row) => models.get(modelOf(columns, row) ?? '') ?? NaN;
    }
    case 'owner': {
      const places = alphabeticalRanks(columns.fleet.owners.map(({ user, id }) => user ?? id));
      return (row) => places[columns.ownersOf(row)[0] ?? -1] ?? NaN;
    }
    default:
      return sortKeyReader(columns, key);
  }
}

/**
 * Returns the nodes in order, by the same key as their GPUs. The server sends nodes ordered by
 * name.
 */
export function nodeOrder({ nodes }: Columns, { key, reversed }: Sort): Uint32Array {
  const isByName = key === 'name' || key === 'model' || key === 'owner';
  return sortRows(
    nodes.count,
    reversed,
    isByName ? (node) => node : sortKeyReader(nodes, key),
    (a, b) => a - b,
  );
}

function sortKeyReader(
  { readings, rank, idle_s }: Measures,
  key: Exclude<SortKey, 'name' | 'model' | 'owner'>,
): (place: number) => number {
  switch (key) {
    case 'worst': {
      const { utilization } = readings;
      return (place) => {
        const load = utilization[place] ?? NaN;
        // An unknown utilization counts as 0 for the order.
        return (rank[place] ?? 0) - (Number.isNaN(load) ? 0 : load / 1000);
      };
    }
    case 'idle':
      return (place) => -(idle_s[place] ?? NaN);
    default: {
      const column = readings[key === 'memory' ? 'memoryUsed' : key];
      return (place) => -(column[place] ?? NaN);
    }
  }
}

function alphabeticalRanks(names: readonly string[]): Uint32Array {
  const { compare } = new Intl.Collator(undefined, { numeric: true });
  const order = names.map((_, i) => i).sort((a, b) => compare(names[a] ?? '', names[b] ?? ''));
  const places = new Uint32Array(names.length);
  order.forEach((place, i) => (places[place] = i));
  return places;
}

/** Sorts rows by key. Rows without a value come last in both directions. */
function sortRows(
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
