/**
 * A comparison of two spans: the lines of the earlier span are drawn over those of the later one,
 * with figures for both.
 */

import type { Extremes, SeriesSource } from '../../lib/timeline';
import { firstAfter } from '../../lib/timeline';
import { trans } from '../../lib/translation';
import { MEMORY, PERCENT, UNITS, type Unit } from '../unit';

/** A span in milliseconds since the Unix epoch, with its data. */
interface Told {
  source: SeriesSource;
  from_ms: number;
  to_ms: number;
}

/** A figure that is compared; `null` if it is unknown. */
export interface Figure {
  id: string;
  label: () => string;
  unit: Unit;
  /** The metric from which the figure is computed. */
  metric: string;
  of: (told: Told, keys: readonly string[]) => number | null;
}

export const FIGURES: readonly Figure[] = [
  {
    id: 'utilization',
    label: () => trans.__('GPU utilization, mean'),
    unit: PERCENT,
    metric: 'utilization.gpu_percent',
    of: (told, keys) => {
      const means = keys.flatMap((key) => mean(told, told.source.values(key)) ?? []);
      return means.length === 0 ? null : sum(means) / means.length;
    },
  },
  {
    id: 'memory',
    label: () => trans.__('Memory, peak'),
    unit: MEMORY,
    metric: 'memory.used_bytes',
    of: (told, keys) =>
      most(
        told,
        keys.map((key) => (told.source.extremes?.(key) ?? null)?.high ?? told.source.values(key)),
      ),
  },
  {
    id: 'energy',
    label: () => trans.__('Energy'),
    unit: UNITS.joules,
    metric: 'power.energy_joules_total',
    of: (told, keys) => {
      const grown = keys.flatMap((key) => growth(told, told.source.values(key)) ?? []);
      return grown.length === 0 ? null : sum(grown);
    },
  },
  {
    id: 'power',
    label: () => trans.__('Power, mean'),
    unit: UNITS.watts,
    metric: 'power.draw_watts',
    of: (told, keys) => {
      const means = keys.flatMap((key) => mean(told, told.source.values(key)) ?? []);
      return means.length === 0 ? null : sum(means);
    },
  },
];

/**
 * Returns the figures of several GPUs together. `gpus` contains the prefixes of their series, as in
 * `seriesKey`, separated by commas.
 */
export function figuresOf(
  source: SeriesSource,
  from_ms: number,
  to_ms: number,
  gpus: string,
): (number | null)[] {
  const told = { source, from_ms, to_ms };
  const keys = (metric: string): string[] => gpus.split(',').map((gpu) => gpu + metric);
  return FIGURES.map(({ metric, of }) => of(told, keys(metric)));
}

/**
 * Returns the change from the earlier to the later value: in points for percentages, and otherwise
 * in percent.
 */
export function changeText({ unit }: Figure, later: number | null, earlier: number | null): string {
  if (later === null || earlier === null) {
    return '';
  }
  const isShare = unit === PERCENT;
  const change = isShare ? later - earlier : earlier === 0 ? NaN : 100 * (later / earlier - 1);
  if (Number.isNaN(change)) {
    return '';
  }
  const rounded = Math.round(change);
  const number = `${rounded > 0 ? '+' : rounded < 0 ? '−' : '±'}${Math.abs(rounded)}`;
  return isShare ? trans.__('%1 points', number) : `${number}\u00a0%`;
}

/** Returns the same series shifted by `by_ms`. */
export function later(source: SeriesSource, by_ms: number): SeriesSource {
  return {
    times_ms: source.times_ms.map((at_ms) => at_ms + by_ms),
    revision: `${source.revision} ${by_ms}`,
    values: (key) => source.values(key),
    extremes: (key): Extremes | null => source.extremes?.(key) ?? null,
  };
}

function within({ source, from_ms, to_ms }: Told): [begin: number, end: number] {
  return [firstAfter(source.times_ms, from_ms - 1), firstAfter(source.times_ms, to_ms)];
}

function known(told: Told, values: Float64Array): Float64Array {
  return values.subarray(...within(told)).filter((value) => !Number.isNaN(value));
}

function mean(told: Told, values: Float64Array): number | null {
  const all = known(told, values);
  return all.length === 0 ? null : sum(all) / all.length;
}

/** Returns the maximum of the sum of all columns at one time. */
function most(told: Told, columns: readonly Float64Array[]): number | null {
  const [begin, end] = within(told);
  let found: number | null = null;
  for (let i = begin; i < end; i += 1) {
    const values = columns
      .map((column) => column[i] ?? NaN)
      .filter((value) => !Number.isNaN(value));
    if (values.length > 0) {
      found = Math.max(found ?? -Infinity, sum(values));
    }
  }
  return found;
}

/**
 * Returns the growth of a counter. If the counter was reset, the growth before the reset is kept.
 */
function growth(told: Told, values: Float64Array): number | null {
  const all = known(told, values);
  let grown = 0;
  for (let i = 1; i < all.length; i += 1) {
    grown += Math.max(0, (all[i] ?? 0) - (all[i - 1] ?? 0));
  }
  return all.length < 2 ? null : grown;
}

function sum(values: Iterable<number>): number {
  let total = 0;
  for (const value of values) {
    total += value;
  }
  return total;
}
