/** Texts for a time in a chart, and for the range of values behind a mean. */

import {
  formatTimeWithDateUnlessToday,
  formatHourAndMinute,
  splitUnit,
  formatTimeOfDay,
} from '../../lib/format';
import type { Unit } from '../unit';

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
