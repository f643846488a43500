/** Who used how much: owners by user, job, notebook or namespace. */

import type { FleetOwner, FleetUsage, OwnerKind } from '../../wire';
import { USE, type Columns } from './columns';
import { kindText, userText } from './describe';
import { plainText } from '../../lib/text';

export const GROUPINGS = ['users', 'jobs', 'notebooks', 'namespaces'] as const;
export type Grouping = (typeof GROUPINGS)[number];

export interface OwnerRow {
  key: string;
  name: string;
  /** Of jobs and notebooks. */
  user: string | null;
  kind: OwnerKind | null;
  /** What the filter is given to find its GPUs. */
  word: string;
  gpu_s: number;
  active_s: number;
  energy_joules: number;
  /** GPUs that are held now, and those of them that are idle. */
  gpus: number;
  idle: number;
  nodes: number;
  /** What is found of it by names, in small letters. */
  search: string;
  /** Of the GPUs held now, those that match what is looked for. */
  matching: number;
}

export const OWNER_SORTS = ['gpu_hours', 'active', 'held_idle', 'energy', 'gpus', 'idle', 'name'] as const;
export type OwnerSort = (typeof OWNER_SORTS)[number];

interface Group {
  key: string;
  name: string;
  word: string;
}

/** Rows of whoever used something meanwhile, or holds a GPU now. */
export function ownerRows(
  usage: FleetUsage | null,
  columns: Columns,
  grouping: Grouping,
  shown: Uint8Array | null,
): OwnerRow[] {
  const rows = new Map<string, OwnerRow>();
  const nodes = new Map<string, Set<number>>();
  const rowOf = (owner: FleetOwner): OwnerRow | null => {
    const group = groupOf(owner, grouping);
    if (group === null) {
      return null;
    }
    const known = rows.get(group.key);
    const row = known ?? {
      ...group,
      user: grouping === 'users' ? null : userText(owner),
      kind: grouping === 'jobs' ? owner.kind : null,
      gpu_s: NaN,
      active_s: NaN,
      energy_joules: NaN,
      gpus: 0,
      idle: 0,
      nodes: 0,
      search: [owner.user, owner.id, owner.namespace].join(' ').toLowerCase(),
      matching: 0,
    };
    rows.set(group.key, row);
    return row;
  };
  for (const { owner, gpu_s, active_gpu_s, energy_joules } of usage?.owners ?? []) {
    const row = rowOf(owner);
    if (row !== null) {
      row.gpu_s = plus(row.gpu_s, gpu_s);
      row.active_s = plus(row.active_s, active_gpu_s);
      row.energy_joules = plus(row.energy_joules, energy_joules);
    }
  }
  // A GPU that somebody holds with two jobs is one GPU of theirs.
  const counted = new Set<string>();
  for (const { gpu, owner: place } of columns.fleet.holds) {
    const owner = columns.owner(place);
    const row = owner === undefined ? null : rowOf(owner);
    const once = `${gpu} ${row?.key ?? ''}`;
    if (row === null || counted.has(once)) {
      continue;
    }
    counted.add(once);
    row.gpus += 1;
    row.matching += shown === null || shown[gpu] === 1 ? 1 : 0;
    row.idle += columns.use[gpu] === USE.idle ? 1 : 0;
    const on = nodes.get(row.key) ?? new Set();
    on.add(columns.node[gpu] ?? 0);
    nodes.set(row.key, on);
  }
  return [...rows.values()].map((row) => ({ ...row, nodes: nodes.get(row.key)?.size ?? 0 }));
}

/** Those that are called so, or hold a GPU now that matches. */
export function ownersMatching(rows: readonly OwnerRow[], filter: string): readonly OwnerRow[] {
  const words = filter
    .toLowerCase()
    .split(/[\s,]+/)
    .filter((word) => word !== '');
  const names = words.map((word) => word.replace(/^[a-z]+:/, ''));
  return words.length === 0
    ? rows
    : rows.filter(({ matching, search }) => matching > 0 || names.every((name) => search.includes(name)));
}

/** Sorted by a column, the largest first, what is not known last. */
export function sortedOwners(rows: readonly OwnerRow[], key: OwnerSort, reversed: boolean): OwnerRow[] {
  const sign = reversed ? -1 : 1;
  const { compare } = new Intl.Collator(undefined, { numeric: true });
  const value: Record<Exclude<OwnerSort, 'name'>, (row: OwnerRow) => number> = {
    gpu_hours: ({ gpu_s }) => gpu_s,
    active: ({ active_s, gpu_s }) => active_s / gpu_s,
    held_idle: heldIdle,
    energy: ({ energy_joules }) => energy_joules,
    gpus: ({ gpus }) => gpus,
    idle: ({ idle }) => idle,
  };
  return [...rows].sort((a, b) => {
    const byName = compare(a.name, b.name);
    if (key === 'name') {
      return sign * byName;
    }
    const [x, y] = [value[key](a), value[key](b)];
    if (Number.isNaN(x) || Number.isNaN(y)) {
      return Number(Number.isNaN(x)) - Number(Number.isNaN(y)) || byName;
    }
    return sign * (y - x) || byName;
  });
}

/** Time in which GPUs were held and no kernel ran, in seconds. */
export function heldIdle({ gpu_s, active_s }: Pick<OwnerRow, 'gpu_s' | 'active_s'>): number {
  return Math.max(0, gpu_s - active_s);
}

function groupOf(owner: FleetOwner, grouping: Grouping): Group | null {
  const { user, kind, id, namespace } = owner;
  switch (grouping) {
    case 'users':
      return user === null ? null : { key: user, name: plainText(user, 80), word: wordOf('user', user) };
    case 'namespaces':
      return namespace === null
        ? null
        : { key: namespace, name: plainText(namespace, 120), word: wordOf('namespace', namespace) };
    case 'notebooks':
      return kind === 'notebook'
        ? { key: `${user ?? ''} ${id}`, name: plainText(id, 120), word: wordOf('notebook', id) }
        : null;
    case 'jobs':
      return kind === 'user' || kind === 'notebook'
        ? null
        : {
            key: JSON.stringify([user, kind, id, namespace]),
            name: `${kindText(kind)} ${plainText(id, 120)}`,
            word: wordOf('job', id),
          };
  }
}

/** A name with blanks is looked for by its first part: words of a filter are apart by blanks. */
function wordOf(place: string, name: string): string {
  return `${place}:${(name.split(/[\s,]+/)[0] ?? '').toLowerCase()}`;
}

function plus(sum: number, value: number | null): number {
  return value === null ? sum : (Number.isNaN(sum) ? 0 : sum) + value;
}
