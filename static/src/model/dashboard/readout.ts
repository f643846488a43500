/**
 * The readout of a chart: the lines of its legend, the values of its tooltip, and texts for times
 * and ranges of values.
 */

import {
  formatTimeWithDateUnlessToday,
  formatHourAndMinute,
  splitUnit,
  formatTimeOfDay,
} from '../../lib/format';
import type { Unit } from '../unit';

/**
 * Hides all lines of a legend except `id`. If the others are already hidden, shows all of them
 * again.
 */
export function isolateLine(
  hidden: readonly string[],
  id: string,
  legend: readonly string[],
): string[] {
  const others = legend.filter((other) => other !== id);
  const elsewhere = hidden.filter((other) => !legend.includes(other));
  const isAlone = !hidden.includes(id) && others.every((other) => hidden.includes(other));
  return isAlone ? elsewhere : [...elsewhere, ...others];
}

/**
 * Hides or shows the line `id`. If this would hide all lines of the legend, all are shown again.
 */
export function toggleLine(
  hidden: readonly string[],
  id: string,
  legend: readonly string[],
): string[] {
  const next = hidden.includes(id) ? hidden.filter((other) => other !== id) : [...hidden, id];
  return legend.every((other) => next.includes(other))
    ? next.filter((other) => !legend.includes(other))
    : next;
}

/** A line and its value at the displayed time; NaN if it has none. */
interface ValuedLine {
  id: string;
  value: number;
}

/**
 * Labels mark the line with the highest value and the line with the lowest value. A label moves to
 * another line only if the values of the two lines differ by more than this share of the axis.
 */
const MIN_LEAD = 0.02;

/**
 * Finds the lines with the highest and the lowest value. The current lines are kept while other
 * lines have about the same value, so that the labels do not flicker.
 */
export class ExtremeLines {
  private highest: string | null = null;
  private lowest: string | null = null;

  /**
   * Returns the IDs of the highest and the lowest line. If they are the same line, returns one ID;
   * if no line has a value, returns none. `range` is the length of the axis.
   */
  findIds(lines: readonly ValuedLine[], range: number): string[] {
    const known = lines.filter(({ value }) => !Number.isNaN(value));
    this.highest = findExtreme(known, this.highest, range * MIN_LEAD, 1);
    this.lowest = findExtreme(known, this.lowest, range * MIN_LEAD, -1);
    return [...new Set([this.highest, this.lowest])].filter((id) => id !== null);
  }
}

function findExtreme(
  lines: readonly ValuedLine[],
  before: string | null,
  lead: number,
  sign: 1 | -1,
): string | null {
  let best: ValuedLine | null = null;
  for (const line of lines) {
    best = best === null || sign * line.value > sign * best.value ? line : best;
  }
  const kept = lines.find(({ id }) => id === before);
  return best !== null && kept !== undefined && sign * (best.value - kept.value) <= lead
    ? kept.id
    : (best?.id ?? null);
}

export interface TooltipValues<T extends ValuedLine> {
  /** The rows, with the highest value first. */
  rows: readonly T[];
  /** The number of lines with a value that are not in `rows`. */
  more: number;
}

/**
 * Returns the lines with the highest values, at most `most`. The line `nearest` is always included.
 */
export function tooltipValues<T extends ValuedLine>(
  lines: readonly T[],
  nearest: string | null,
  most: number,
): TooltipValues<T> {
  const known = lines.filter(({ value }) => !Number.isNaN(value)).sort((a, b) => b.value - a.value);
  const place = known.findIndex(({ id }) => id === nearest);
  const rows = known.filter((_, i) => i < (place < most ? most : most - 1) || i === place);
  return { rows, more: known.length - rows.length };
}

/** Returns the line whose value is nearest to `value`, or `null` if none is within `within`. */
export function nearestLineId(
  lines: readonly ValuedLine[],
  value: number,
  within: number,
): string | null {
  let nearest: string | null = null;
  let least = within;
  for (const line of lines) {
    const distance = Math.abs(line.value - value);
    if (distance <= least) {
      least = distance;
      nearest = line.id;
    }
  }
  return nearest;
}

const MINUTE_MS = 60_000;
const MAX_SPAN_WITH_SECONDS_MS = 60 * MINUTE_MS;

/**
 * Returns the time of a reading, such as `10:42:07`, or the span of a mean, such as `Nov 23, 2026
 * 14:00 – 14:15`.
 */
export function formatReadingTime(at_ms: number, mean_ms: number, now_ms: number): string {
  if (mean_ms === 0) {
    return formatTimeWithDateUnlessToday(at_ms, now_ms);
  }
  // The spans of means start at multiples of their length.
  const from_ms = Math.floor(at_ms / mean_ms) * mean_ms;
  const time = mean_ms % MINUTE_MS === 0 ? formatHourAndMinute : formatTimeOfDay;
  return `${formatTimeWithDateUnlessToday(from_ms, now_ms, time)} – ${time(from_ms + mean_ms)}`;
}

/**
 * Returns a range such as `71 – 100 %`. It is empty if the value is a single reading, or if both
 * ends have the same text.
 */
export function formatRange(
  unit: Unit,
  range: readonly [low: number, high: number] | null,
): string {
  if (range === null) {
    return '';
  }
  const [low, high] = range.map(unit.text) as [string, string];
  const [number, name] = splitUnit(low);
  const isSameUnit = name !== '' && name === splitUnit(high)[1];
  return low === high ? '' : `${isSameUnit ? number : low} – ${high}`;
}

/**
 * Returns the start and end of a span. The end has a date if it is on another day. Long spans are
 * shown without seconds.
 */
export function formatSpan(
  from_ms: number,
  to_ms: number,
  now_ms: number,
): [from: string, to: string] {
  const isOneDay = new Date(from_ms).toDateString() === new Date(to_ms).toDateString();
  const time = to_ms - from_ms < MAX_SPAN_WITH_SECONDS_MS ? formatTimeOfDay : formatHourAndMinute;
  return [
    formatTimeWithDateUnlessToday(from_ms, now_ms, time),
    isOneDay ? time(to_ms) : formatTimeWithDateUnlessToday(to_ms, now_ms, time),
  ];
}
