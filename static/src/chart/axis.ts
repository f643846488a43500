/**
 * A chart's axes: the range of the value axis, and ticks at round numbers and at round local times.
 */

import { formatDayOfMonth, formatHourAndMinute, formatTimeOfDay } from '../lib/format';
import { indexAfter } from '../lib/timeline';
import type { ChartLine, TimeWindow } from './content';

/** The properties of a value axis that do not depend on the values. */
export interface AxisEnds {
  floor: number;
  /**
   * The upper end of the axis if no limit is known. Axes of percentages always end at this value.
   */
  ceiling: number;
  /**
   * The unit of round axis labels. For example, if it is the number of bytes in a GiB, labels are
   * round numbers of GiB.
   */
  base: number;
  /** Whether no value is ever above `ceiling`. */
  bounded: boolean;
}

type Range = readonly [floor: number, ceiling: number];

/**
 * Returns the range of an unzoomed axis: up to the limit, or further if there are higher values.
 */
export function computeUnzoomedAxis(
  ends: AxisEnds,
  limit: number | null,
  lines: readonly ChartLine[],
  window: TimeWindow,
): Range {
  const { floor, base } = ends;
  const isMemory = base !== 1;
  if (ends.bounded || (isMemory && limit !== null)) {
    return [floor, ends.bounded ? ends.ceiling : Math.max(ends.ceiling, limit ?? 0)];
  }
  // If values may reach a limit, the axis extends a little above the limit.
  const ceiling = Math.max(ends.ceiling, (limit ?? 0) * 1.06);
  const [lowest, highest] = findExtent(lines, window) ?? [floor, ceiling];
  if (highest > ceiling && limit === null && floor === 0) {
    return [floor, roundUp(highest, base)];
  }
  const step = roundUp((Math.max(highest, ceiling) - Math.min(lowest, floor)) / 10, base);
  return [
    lowest < floor ? Math.floor(lowest / step) * step : floor,
    highest > ceiling ? Math.ceil(highest / step) * step : ceiling,
  ];
}

/**
 * Returns the smallest range that shows all values, or `null` if there are none. A stacked chart
 * starts at `floor`.
 */
export function computeFittedAxis(
  { floor, base }: AxisEnds,
  isStacked: boolean,
  lines: readonly ChartLine[],
  window: TimeWindow,
): Range | null {
  const extent = findExtent(lines, window);
  return extent && roundRange(isStacked ? floor : extent[0], extent[1], base);
}

/** Returns the lowest and the highest visible value, or `null` if there are none. */
export function findExtent(
  lines: readonly Pick<ChartLine, 'values' | 'extremes' | 'times_ms'>[],
  window: TimeWindow,
): [lowest: number, highest: number] | null {
  let [lowest, highest] = [Infinity, -Infinity];
  for (const { values, extremes, times_ms = window.times_ms } of lines) {
    const { low, high } = extremes ?? { low: values, high: values };
    const end = indexAfter(times_ms, window.to_ms);
    for (let i = indexAfter(times_ms, window.from_ms); i < end; i += 1) {
      const [least = NaN, most = NaN] = [low[i], high[i]];
      highest = most > highest ? most : highest;
      lowest = least < lowest ? least : lowest;
    }
  }
  return lowest > highest ? null : [lowest, highest];
}

const SECOND_MS = 1000;
export const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;
export const DAY_MS = 24 * HOUR_MS;
const TIME_STEPS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND_MS),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE_MS),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR_MS),
  ...[1, 2, 3, 7, 14, 28].map((n) => n * DAY_MS),
];
/**
 * The number of days from January 1, 1970, a Thursday, to the next Monday. Weekly ticks are on
 * Mondays.
 */
const FIRST_MONDAY_DAYS = 4;

/**
 * Returns at most `most` round numbers from `min` to `max`. The numbers are round when they are
 * divided by `base`, for example the number of bytes in a GiB.
 */
export function valueTicks(min: number, max: number, most: number, base = 1): number[] {
  const least = (max - min) / Math.max(1, most);
  if (!(least > 0) || !Number.isFinite(least)) {
    return [];
  }
  const step = roundUp(least, base);
  const ticks: number[] = [];
  for (let n = Math.ceil(min / step); n * step <= max; n += 1) {
    ticks.push(n * step);
  }
  return ticks;
}

/**
 * Returns a round number below `low` and one above `high`. Both are multiples of a step of about a
 * quarter of the range, so that the axis does not change with every sample.
 */
export function roundRange(low: number, high: number, base = 1): [floor: number, ceiling: number] {
  const least = Math.max(high - low, Math.abs(high) * 1e-3, base * 1e-3);
  const step = roundUp(least / 4, base);
  const floor = Math.floor(low / step) * step;
  return [floor, Math.max(floor + step, Math.ceil(high / step) * step)];
}

/**
 * Rounds up to 1, 2, 5 or 10 times a power of ten, so that an axis does not change with every
 * sample.
 */
export function roundUp(value: number, base = 1): number {
  const power = 10 ** Math.floor(Math.log10(value / base));
  return ([1, 2, 5].find((factor) => factor * power * base >= value) ?? 10) * power * base;
}

/** Returns at most `most` round times from `from_ms` to `to_ms`, and the interval between them. */
export function timeTicks(
  from_ms: number,
  to_ms: number,
  most: number,
): { step_ms: number; times_ms: number[] } {
  const least_ms = (to_ms - from_ms) / Math.max(1, most);
  const step_ms =
    TIME_STEPS_MS.find((step) => step >= least_ms) ?? Math.ceil(least_ms / DAY_MS) * DAY_MS;
  const times_ms =
    step_ms < HOUR_MS
      ? evenlySpacedTimes(from_ms, to_ms, step_ms)
      : roundLocalTimes(from_ms, to_ms, step_ms);
  return { step_ms, times_ms };
}

/**
 * Returns the label of a tick at the interval `step_ms`: a time with or without seconds, or the
 * date at the start of a day.
 */
export function formatTimeTick(at_ms: number, step_ms: number): string {
  if (step_ms >= DAY_MS || (step_ms >= MINUTE_MS && isMidnight(at_ms))) {
    return formatDayOfMonth(at_ms);
  }
  return step_ms < MINUTE_MS ? formatTimeOfDay(at_ms) : formatHourAndMinute(at_ms);
}

/** Returns whether a day starts at this time in the user's time zone. */
export function isMidnight(at_ms: number): boolean {
  const date = new Date(at_ms);
  return date.getHours() + date.getMinutes() + date.getSeconds() === 0;
}

function evenlySpacedTimes(from_ms: number, to_ms: number, step_ms: number): number[] {
  // Ticks at half hours must be round in local time, even where local time differs from UTC by a
  // fraction of an hour.
  const zone_ms = new Date(from_ms).getTimezoneOffset() * MINUTE_MS;
  const times_ms: number[] = [];
  for (
    let at = Math.ceil((from_ms - zone_ms) / step_ms) * step_ms + zone_ms;
    at <= to_ms;
    at += step_ms
  ) {
    times_ms.push(at);
  }
  return times_ms;
}

/** Returns round hours and days of local time. Days may have 23 or 25 hours. */
function roundLocalTimes(from_ms: number, to_ms: number, step_ms: number): number[] {
  const from = new Date(from_ms);
  const step_days = Math.max(1, step_ms / DAY_MS);
  const day = Date.UTC(from.getFullYear(), from.getMonth(), from.getDate()) / DAY_MS;
  const phase = step_days % 7 === 0 ? FIRST_MONDAY_DAYS : 0;
  const sinceTick = (((day - phase) % step_days) + step_days) % step_days;
  const hours = Math.min(24, step_ms / HOUR_MS);
  const times_ms: number[] = [];
  for (let days = -sinceTick, last = -Infinity; last <= to_ms; days += step_days) {
    for (let hour = 0; hour < 24; hour += hours) {
      const at = new Date(
        from.getFullYear(),
        from.getMonth(),
        from.getDate() + days,
        hour,
      ).getTime();
      // If daylight saving time skips an hour, that hour has the same timestamp as the next hour.
      // The timestamp must not be added twice.
      if (at >= from_ms && at <= to_ms && at !== last) {
        times_ms.push(at);
      }
      last = at;
    }
  }
  return times_ms;
}
