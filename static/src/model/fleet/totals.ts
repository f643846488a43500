/** A fleet or a part of it in a few numbers, and units for such sums. */

import {
  DASH,
  formatAxisTicks,
  formatCount,
  energyUnit,
  formatSignificant,
  memoryUnitBytes,
  units,
  markLowerBound,
} from '../../lib/format';
import { trans } from '../../lib/translation';
import type { Unit } from '../unit';
import { FIELDS, isCritical, type Columns, type Readings, type Sums } from './columns';
import { LOOKS, valueText, type NumericMetric } from './metric';

export interface Totals extends Sums {
  /** The number of users who use or hold one of the GPUs. */
  users: number;
}

/** A condition, and the number of GPUs that have it. */
export interface Concern {
  /** The name of a condition. */
  kind: string;
  severity: number;
  count: number;
}

/** Returns the sums of the visible rows. If `shown` is `null`, all rows are visible. */
export function totalsOf(columns: Columns, shown: Uint8Array | null): Totals {
  const users = new Set<string>();
  for (const { gpu, owner } of columns.fleet.holds) {
    const user = columns.owner(owner)?.user ?? null;
    if (user !== null && (shown === null || shown[gpu] === 1)) {
      users.add(user);
    }
  }
  const sums = shown === null ? columns.totals : selectedSums(columns, shown);
  return { ...sums, users: users.size };
}

/** Returns whether some of the GPUs do not report `reading`, so that its sum is a lower bound. */
export function isPartiallyReported({ gpus, reporting }: Sums, reading: keyof Readings): boolean {
  return (reporting[FIELDS[reading]]?.[0] ?? 0) < (gpus[0] ?? 0);
}

/**
 * Returns a reading of all GPUs together: `≥ 3.1 / 11.2 TiB`, `up to 84 °C`, or the short form `≥
 * 3.1 TiB`.
 */
export function totalText(
  totals: Totals,
  metric: NumericMetric,
  { isShort }: { isShort: boolean },
): string {
  const { value, limit, unit } = LOOKS[metric];
  const [reading = NaN] = totals.readings[value];
  const [most = NaN] = totals.readings[limit ?? value];
  const sized =
    metric === 'memory' ? memoryUnit(most) : metric === 'power' ? powerUnit(most) : unit;
  const text = valueText(sized, reading, isShort || limit === null ? NaN : most);
  if (metric === 'temperature') {
    return isShort || text === DASH ? text : trans.__('up to %1', text);
  }
  return markLowerBound(text, metric !== 'utilization' && isPartiallyReported(totals, value));
}

/** Sums the rows of a selection. The server already sends the sums of all GPUs and of each node. */
function selectedSums(columns: Columns, shown: Uint8Array): Sums {
  const rows = [...shown.keys()].filter((row) => shown[row] === 1);
  const count = (of: readonly number[]): number =>
    of.reduce((sum, row) => sum + columns.gpusOf(row), 0);
  const states: Sums['states'] = {};
  const reporting: Sums['reporting'] = {};
  for (const row of rows) {
    const state = columns.state[row] ?? 'unknown';
    states[state] = [(states[state]?.[0] ?? 0) + columns.gpusOf(row)];
  }
  const readings = Object.entries(FIELDS).map(([key, id]) => {
    const column = columns.readings[key as keyof Readings];
    const known = rows.filter((row) => !Number.isNaN(column[row] ?? NaN));
    const many = (reporting[id] = [count(known)])[0] ?? 0;
    const value = (row: number): number => column[row] ?? 0;
    const sum = known.reduce(
      (total, row) =>
        key === 'temperature'
          ? Math.max(total, value(row))
          : total + value(row) * (key === 'utilization' ? columns.gpusOf(row) : 1),
      key === 'temperature' ? -Infinity : 0,
    );
    const result = key === 'utilization' ? sum / many : sum;
    return [key, Float64Array.of(known.length === 0 ? NaN : result)];
  });
  return {
    count: 1,
    readings: Object.fromEntries(readings) as Readings,
    rank: [],
    idle_s: new Float64Array(),
    gpus: [count(rows)],
    states,
    reporting,
  };
}

/** Returns the number of GPUs that do not respond or have a critical condition. */
export function countCriticalGpus(columns: Columns): number {
  let count = 0;
  for (let row = 0; row < columns.count; row += 1) {
    count += isCritical(columns, row) ? Math.max(1, columns.gpusOf(row)) : 0;
  }
  return count;
}

/** Returns the conditions that need attention, the most severe first, then the most frequent. */
export function concernsOf(columns: Columns): Concern[] {
  const concerns = new Map<string, Concern>();
  for (const { kind, severity } of columns.fleet.conditions) {
    // Idle GPUs that are held are already counted in the fleet's totals.
    if (kind !== 'held_idle') {
      const concern = concerns.get(kind) ?? { kind, severity, count: 0 };
      concern.severity = Math.max(severity, concern.severity);
      concern.count += 1;
      concerns.set(kind, concern);
    }
  }
  return [...concerns.values()].sort((a, b) => b.severity - a.severity || b.count - a.count);
}

type Scale = readonly [size: number, name: string];

const SPACE = '\u00a0';

/**
 * Sums of memory change to the next larger unit at this value, and other sums at `MANY`. The limit
 * for memory is higher, because thousands of GiB are still easy to read.
 */
const MANY_BYTES = 9999.5;
const MANY = 999.5;

/** Returns the unit for sums of memory up to `most_bytes`. */
export function memoryUnit(most_bytes: number): Unit {
  const step = units().memory === 'GiB' ? 1024 : 1000;
  const names = units().memory === 'GiB' ? ['GiB', 'TiB', 'PiB'] : ['GB', 'TB', 'PB'];
  const scales = names.map((name, i): Scale => [memoryUnitBytes() * step ** i, name]);
  return unitFor(most_bytes, scales, MANY_BYTES);
}

export function powerUnit(most_watts: number): Unit {
  // Power up to that of a large node is shown in watts.
  const scales: readonly Scale[] = [
    [1, 'W'],
    [1e3, 'kW'],
    [1e6, 'MW'],
  ];
  return unitFor(most_watts, most_watts < 9999.5 ? scales.slice(0, 1) : scales.slice(1));
}

/** Returns the unit of an energy. Energy over days is shown in watt-hours. */
export function energyUnitOf(most_joules: number): Unit {
  return unitFor(most_joules, [
    [3.6e6, 'kWh'],
    [3.6e9, 'MWh'],
    [3.6e12, 'GWh'],
  ]);
}

function unitFor(most: number, scales: readonly Scale[], many = MANY): Unit {
  const fits = scales.find(([size]) => most / size < many);
  const [size, name] = fits ?? scales.at(-1) ?? energyUnit(1);
  const number = (value: number): string =>
    size === 1 ? formatCount(value) : formatSignificant(value / size);
  return {
    number,
    text: (value) => `${number(value)}${SPACE}${name}`,
    ticks: (values) => formatAxisTicks(values, size, name),
    floor: 0,
    ceiling: size,
    base: size,
    bounded: false,
  };
}
