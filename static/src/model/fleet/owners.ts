/** The GPU usage of owners, grouped by user, job, notebook or namespace. */

import { formatCount } from '../../lib/format';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { FleetOwner, FleetUsage, OwnerKind } from '../../wire';
import type { Columns } from './columns';
import { kindText, userText } from './describe';
import { formatFieldWord, parseFilter } from './filter';

export const GROUPINGS = ['users', 'jobs', 'notebooks', 'namespaces'] as const;
export type Grouping = (typeof GROUPINGS)[number];

export interface OwnerRow {
  key: string;
  name: string;
  /** The user of a job or notebook. */
  user: string | null;
  kind: OwnerKind | null;
  /** The filter word that matches the owner's GPUs; empty for summary rows. */
  word: string;
  gpu_s: number;
  active_s: number;
  energy_joules: number;
  /** Whether the amounts are lower bounds because some of them could not be read. */
  isLowerBound: boolean;
  /** The number of GPUs that the owner uses or holds now. `idle` of them are idle. */
  gpus: number;
  idle: number;
  nodes: number;
  /** The owner whose names the filter is compared with. */
  owner: FleetOwner;
  /** How many of the owner's current GPUs match the filter. */
  matching: number;
}

export const OWNER_SORTS = [
  'gpu_hours',
  'active',
  'held_idle',
  'energy',
  'gpus',
  'idle',
  'name',
] as const;
export type OwnerSort = (typeof OWNER_SORTS)[number];

interface Group {
  key: string;
  name: string;
  word: string;
  owner: FleetOwner;
}

/** The amounts that one or several owners used. */
type Amounts = Pick<FleetUsage['unlisted'], 'gpu_s' | 'active_gpu_s' | 'energy_joules'>;

/**
 * Returns a row for each owner that used a GPU in the time range or currently uses or holds one.
 */
export function ownerRows(
  usage: FleetUsage | null,
  columns: Columns,
  grouping: Grouping,
  filter: string,
): OwnerRow[] {
  const rows = new Map<string, OwnerRow>();
  const nodes = new Map<string, Set<number>>();
  const isLowerBound = areAmountsLowerBounds(usage, grouping);
  const rowOf = (owner: FleetOwner): OwnerRow | null => {
    const group = groupOf(owner, grouping);
    if (group === null) {
      return null;
    }
    const row = rows.get(group.key) ?? {
      ...EMPTY_ROW,
      ...group,
      user: grouping === 'users' ? null : userText(owner),
      kind: grouping === 'jobs' ? owner.kind : null,
      isLowerBound,
    };
    rows.set(group.key, row);
    return row;
  };
  for (const [owner, used] of amountsByOwner(usage, grouping)) {
    const row = rowOf(owner);
    if (row !== null) {
      addAmounts(row, used);
    }
  }
  const isShown = parseFilter(filter).matchHolds(columns);
  // If an owner uses a GPU with two jobs, the GPU is counted once.
  const counted = new Set<string>();
  const matched = new Set<string>();
  for (const { gpu, owner: place } of columns.fleet.holds) {
    const owner = columns.owner(place);
    const row = owner === undefined ? null : rowOf(owner);
    if (row === null) {
      continue;
    }
    const once = `${gpu} ${row.key}`;
    if (!matched.has(once) && isShown(gpu, place)) {
      matched.add(once);
      row.matching += 1;
    }
    if (counted.has(once)) {
      continue;
    }
    counted.add(once);
    row.gpus += 1;
    row.idle += columns.state[gpu] === 'idle' ? 1 : 0;
    const on = nodes.get(row.key) ?? new Set();
    on.add(columns.node[gpu] ?? 0);
    nodes.set(row.key, on);
  }
  return [...rows.values()].map((row) => ({ ...row, nodes: nodes.get(row.key)?.size ?? 0 }));
}

/** Returns the summary rows: unlisted jobs, unknown owners, and the total of all matching rows. */
export function makeSummaryRows(
  usage: FleetUsage | null,
  grouping: Grouping,
  rows: readonly OwnerRow[],
  filter: string,
): OwnerRow[] {
  if (usage === null) {
    return [];
  }
  const isCut = grouping === 'jobs' && usage.unlisted.owners > 0;
  const isAll = parseFilter(filter).isEmpty;
  const isLowerBound = areAmountsLowerBounds(usage, grouping);
  const sumRow = (name: string, isPart: boolean): OwnerRow => ({
    ...EMPTY_ROW,
    key: name,
    name,
    isLowerBound: isPart,
  });
  const total = sumRow(trans.__('Total'), isLowerBound || (isCut && !isAll));
  for (const { gpu_s, active_s, energy_joules } of rows) {
    addAmounts(total, { gpu_s, active_gpu_s: active_s, energy_joules });
  }
  if (!isAll) {
    return rows.length === 0 ? [] : [total];
  }
  const others: OwnerRow[] = [];
  const addOthers = (name: string, used: Amounts): void => {
    const row = sumRow(name, isLowerBound);
    addAmounts(row, used);
    addAmounts(total, used);
    others.push(row);
  };
  if (isCut) {
    addOthers(trans.__('%1 more', formatCount(usage.unlisted.owners)), usage.unlisted);
  }
  const unknown = usageGroups(usage, grouping).find(({ name }) => name === null);
  if (unknown !== undefined) {
    addOthers(
      grouping === 'users' ? trans.__('Unknown user') : trans.__('Unknown namespace'),
      unknown,
    );
  }
  return rows.length + others.length === 0 ? [] : [...others, total];
}

/**
 * Returns the unrecorded GPU time in seconds. For this time, it is not known whether the GPUs had
 * an owner. Returns NaN if the recorded time itself is not known.
 */
export function unrecordedTime(
  { users, unheld_gpu_s, from_ms, to_ms }: FleetUsage,
  gpus: number,
): number {
  const known_s = users.reduce((sum, { gpu_s }) => sum + (gpu_s ?? NaN), unheld_gpu_s ?? NaN);
  return Math.max(0, (gpus * (to_ms - from_ms)) / 1000 - known_s);
}

/**
 * Returns the owners that match the filter. An owner matches by name, or through a GPU that the
 * owner currently uses and that matches.
 */
export function filterOwners(rows: readonly OwnerRow[], filter: string): readonly OwnerRow[] {
  const { names } = parseFilter(filter);
  return rows.filter(({ matching, owner }) => matching > 0 || names(owner));
}

/** Sorts rows by a column, with the largest value first. Unknown values come last. */
export function sortOwners(
  rows: readonly OwnerRow[],
  key: OwnerSort,
  reversed: boolean,
): OwnerRow[] {
  const sign = reversed ? -1 : 1;
  const { compare } = new Intl.Collator(undefined, { numeric: true });
  const value: Record<Exclude<OwnerSort, 'name'>, (row: OwnerRow) => number> = {
    gpu_hours: ({ gpu_s }) => gpu_s,
    active: ({ active_s, gpu_s }) => active_s / gpu_s,
    held_idle: heldIdleTime,
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

/** Returns the time, in seconds, in which GPUs were held while no kernel was running. */
export function heldIdleTime({ gpu_s, active_s }: Pick<OwnerRow, 'gpu_s' | 'active_s'>): number {
  return Math.max(0, gpu_s - active_s);
}

/**
 * Returns whether the amounts are lower bounds. The sums of namespaces are lower bounds if there
 * are pods with an unknown namespace.
 */
function areAmountsLowerBounds(usage: FleetUsage | null, grouping: Grouping): boolean {
  const isUnknown =
    grouping === 'namespaces' && usage?.namespaces.some(({ name }) => name === null) === true;
  return isUnknown || usage?.state === 'partial';
}

/**
 * Returns the amounts of each owner. Users and namespaces have been summed by the server, because
 * its list of jobs may be truncated.
 */
function amountsByOwner(usage: FleetUsage | null, grouping: Grouping): [FleetOwner, Amounts][] {
  if (usage === null) {
    return [];
  }
  if (grouping === 'jobs' || grouping === 'notebooks') {
    return usage.owners.map((used) => [used.owner, used]);
  }
  return usageGroups(usage, grouping).flatMap((used) =>
    used.name === null ? [] : [[makeGroupOwner(used.name, grouping), used]],
  );
}

function usageGroups(usage: FleetUsage, grouping: Grouping): FleetUsage['users'] {
  return grouping === 'users' ? usage.users : grouping === 'namespaces' ? usage.namespaces : [];
}

function makeGroupOwner(name: string, grouping: 'users' | 'namespaces'): FleetOwner {
  return grouping === 'users'
    ? { user: name, kind: 'user', id: '', namespace: null }
    : { user: null, kind: 'pod', id: '', namespace: name };
}

function groupOf(owner: FleetOwner, grouping: Grouping): Group | null {
  const { user, kind, id, namespace } = owner;
  const isJob = kind !== 'user' && kind !== 'notebook';
  switch (grouping) {
    case 'users':
    case 'namespaces': {
      const isUser = grouping === 'users';
      const name = isUser ? user : namespace;
      return name === null
        ? null
        : {
            key: name,
            name: plainText(name, isUser ? 80 : 120),
            word: formatFieldWord(isUser ? 'user' : 'namespace', name),
            owner: makeGroupOwner(name, grouping),
          };
    }
    case 'notebooks':
    case 'jobs': {
      const isShown = grouping === 'jobs' ? isJob : kind === 'notebook';
      const name = plainText(id, 120);
      return !isShown
        ? null
        : {
            key: JSON.stringify([user, kind, id, isJob ? namespace : null]),
            name: isJob ? `${kindText(kind)} ${name}` : name,
            word: formatFieldWord(isJob ? 'job' : 'notebook', id),
            owner,
          };
    }
  }
}

/** The initial row of an owner. */
const EMPTY_ROW: OwnerRow = {
  key: '',
  name: '',
  user: null,
  kind: null,
  word: '',
  gpu_s: NaN,
  active_s: NaN,
  energy_joules: NaN,
  isLowerBound: false,
  gpus: 0,
  idle: 0,
  nodes: 0,
  owner: { user: null, kind: 'user', id: '', namespace: null },
  matching: 0,
};

function addAmounts(row: OwnerRow, { gpu_s, active_gpu_s, energy_joules }: Amounts): void {
  row.gpu_s = addUnlessMissing(row.gpu_s, gpu_s);
  row.active_s = addUnlessMissing(row.active_s, active_gpu_s);
  row.energy_joules = addUnlessMissing(row.energy_joules, energy_joules);
}

/** Adds a value to a sum if the value is known. The sum is NaN as long as no value is known. */
function addUnlessMissing(sum: number, value: number | null): number {
  return value === null || Number.isNaN(value) ? sum : (Number.isNaN(sum) ? 0 : sum) + value;
}
