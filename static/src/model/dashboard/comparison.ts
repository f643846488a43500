/**
 * Two spans of the past beside each other: the lines of the earlier one where those of the later
 * are, and figures of both.
 */

import type { Extremes, SeriesSource } from '../../lib/timeline';
import { firstAfter } from '../../lib/timeline';
import { trans } from '../../lib/translation';
import { MEMORY, PERCENT, UNITS, type Unit } from '../unit';

/** A span, in milliseconds since the Unix epoch, and what is known of it. */
interface Told {
  source: SeriesSource;
  from_ms: number;
  to_ms: number;
}

/** What is compared; `null` where it is not known. */
export interface Figure {
  id: string;
  label: () => string;
  unit: Unit;
  /** The reading that it is made of. */
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
 * Figures of several GPUs together; `gpus` is how their series begin, as `seriesKey` has it, with
 * commas between.
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
 * How far the later is from the earlier: percentages by their difference in points, all else by its
 * ratio.
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

/** The same series, so much later. */
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

/** The most that all had together at one time. */
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

/** What a counter has grown by; where it began anew, what it had grown by before is kept. */
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
