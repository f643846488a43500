/** A fleet, or a part of it, in a few numbers. */

import { USE, type Columns } from './columns';

export interface Totals {
  gpus: number;
  /** How many are at what, by `USE`. */
  used: readonly number[];
  /** The mean of the GPUs that report it; NaN if none does. */
  utilization: number;
  /** Sums of what is known. */
  memoryUsed: number;
  memoryTotal: number;
  power: number;
  powerLimit: number;
  /** Whether these sums lack GPUs that do not report their values. */
  isPartial: { memoryUsed: boolean; power: boolean };
  /** The highest. */
  temperature: number;
  /** How many users hold one of them. */
  users: number;
}

/** What is wrong with how many. */
export interface Concern {
  /** The name of a condition. */
  kind: string;
  severity: number;
  count: number;
}

/** Of the rows that are shown: all, where `shown` is `null`. */
export function totalsOf(columns: Columns, shown: Uint8Array | null): Totals {
  const { readings } = columns;
  const used: number[] = Object.values(USE).map(() => 0);
  let gpus = 0;
  let known = 0;
  let utilization = 0;
  let temperature = NaN;
  const sums = { memoryUsed: NaN, memoryTotal: NaN, power: NaN, powerLimit: NaN };
  const isPartial = { memoryUsed: false, power: false };
  for (let row = 0; row < columns.count; row += 1) {
    if (shown?.[row] === 0) {
      continue;
    }
    const many = columns.gpusOf(row);
    gpus += many;
    const use = columns.use[row] ?? USE.unknown;
    used[use] = (used[use] ?? 0) + many;
    const load = readings.utilization[row] ?? NaN;
    if (!Number.isNaN(load)) {
      known += many;
      utilization += load * many;
    }
    for (const key of ['memoryUsed', 'memoryTotal', 'power', 'powerLimit'] as const) {
      const value = readings[key][row] ?? NaN;
      if (!Number.isNaN(value)) {
        sums[key] = (Number.isNaN(sums[key]) ? 0 : sums[key]) + value;
      }
    }
    for (const key of ['memoryUsed', 'power'] as const) {
      isPartial[key] ||= many > 0 && Number.isNaN(readings[key][row] ?? NaN);
    }
    const celsius = readings.temperature[row] ?? NaN;
    if (celsius > temperature || Number.isNaN(temperature)) {
      temperature = celsius;
    }
  }
  const users = new Set<string>();
  for (const { gpu, owner } of columns.fleet.holds) {
    const user = columns.owner(owner)?.user ?? null;
    if (user !== null && (shown === null || shown[gpu] === 1)) {
      users.add(user);
    }
  }
  const mean = known === 0 ? NaN : utilization / known;
  return { gpus, used, users: users.size, utilization: mean, temperature, ...sums, isPartial };
}

/** What somebody should look at, the worst first, then the most frequent. */
export function concernsOf(columns: Columns): Concern[] {
  const concerns = new Map<string, Concern>();
  const add = (kind: string, severity: number): void => {
    const concern = concerns.get(kind) ?? { kind, severity, count: 0 };
    concerns.set(kind, {
      kind,
      severity: Math.max(severity, concern.severity),
      count: concern.count + 1,
    });
  };
  for (const { kind, severity } of columns.fleet.conditions) {
    // GPUs that are idle while they are held are among the numbers of the fleet already.
    if (kind !== 'held_idle') {
      add(kind, severity);
    }
  }
  return [...concerns.values()].sort((a, b) => b.severity - a.severity || b.count - a.count);
}
