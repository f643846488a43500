/**
 * A comparison of two spans: a chart shows the lines of both on the same time axis, and numbers are
 * computed for each span.
 */

import type { Extremes, SeriesSource } from '../../lib/timeline';
import { indexAfter } from '../../lib/timeline';
import { trans } from '../../lib/translation';
import { MEMORY, PERCENT, UNITS, type Unit } from '../unit';

/** A span in milliseconds since the Unix epoch, and the source of its values. */
interface SpanData {
  source: SeriesSource;
  from_ms: number;
  to_ms: number;
}

/**
 * A number that is computed for both spans and compared. `of` computes its value, and returns
 * `null` if the value is unknown.
 */
export interface Figure {
  id: string;
  label: () => string;
  unit: Unit;
  /** The metric from which the figure is computed. */
  metric: string;
  of: (told: SpanData, keys: readonly string[]) => number | null;
}

export const FIGURES: readonly Figure[] = [
  {
    id: 'utilization',
    label: () => trans.__('GPU utilization, mean'),
    unit: PERCENT,
    metric: 'utilization.gpu_percent',
    of: (told, keys) => {
      const means = meansOf(told, keys);
      return means.length === 0 ? null : sum(means) / means.length;
    },
  },
  {
    id: 'memory',
    label: () => trans.__('Memory, peak'),
    unit: MEMORY,
    metric: 'memory.used_bytes',
    of: (told, keys) =>
      highestSum(
        told,
        keys.map((key) => told.source.readExtremes?.(key)?.high ?? told.source.values(key)),
      ),
  },
  {
    id: 'energy',
    label: () => trans.__('Energy'),
    unit: UNITS.joules,
    metric: 'power.energy_joules_total',
    of: (told, keys) => {
      const grown = keys.flatMap((key) => counterGrowth(told, key) ?? []);
      return grown.length === 0 ? null : sum(grown);
    },
  },
  {
    id: 'power',
    label: () => trans.__('Power, mean'),
    unit: UNITS.watts,
    metric: 'power.draw_watts',
    of: (told, keys) => {
      const means = meansOf(told, keys);
      return means.length === 0 ? null : sum(means);
    },
  },
];

/**
 * Returns the value of each figure for several GPUs together. `gpus` is a comma-separated list of
 * the prefixes that `seriesKey` gives to the GPUs' series.
 */
export function computeFigures(
  source: SeriesSource,
  from_ms: number,
  to_ms: number,
  gpus: string,
): (number | null)[] {
  const spanData = { source, from_ms, to_ms };
  const keys = (metric: string): string[] => gpus.split(',').map((gpu) => gpu + metric);
  return FIGURES.map(({ metric, of }) => of(spanData, keys(metric)));
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
export function shiftSeries(source: SeriesSource, by_ms: number): SeriesSource {
  return {
    times_ms: source.times_ms.map((at_ms) => at_ms + by_ms),
    revision: `${source.revision} ${by_ms}`,
    values: (key) => source.values(key),
    readExtremes: (key): Extremes | null => source.readExtremes?.(key) ?? null,
  };
}

function indexRange({ source, from_ms, to_ms }: SpanData): [begin: number, end: number] {
  return [indexAfter(source.times_ms, from_ms - 1), indexAfter(source.times_ms, to_ms)];
}

function readSpanValues(told: SpanData, key: string): Float64Array {
  const values = told.source.values(key).subarray(...indexRange(told));
  return values.filter((value) => !Number.isNaN(value));
}

/** Returns the means of the series that have values in the span. */
function meansOf(told: SpanData, keys: readonly string[]): number[] {
  return keys
    .map((key) => readSpanValues(told, key))
    .filter((values) => values.length > 0)
    .map((values) => sum(values) / values.length);
}

/** Adds up the values of all columns at each time, and returns the highest sum. */
function highestSum(told: SpanData, columns: readonly Float64Array[]): number | null {
  const [begin, end] = indexRange(told);
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
 * Returns the growth of a counter. If the counter was reset, returns the growth before the reset
 * plus the growth after it.
 */
function counterGrowth(told: SpanData, key: string): number | null {
  const all = readSpanValues(told, key);
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
