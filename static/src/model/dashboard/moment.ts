/** What a moment of a chart is called, and what lies behind a value there. */

import { formatSince, hourAndMinute, splitUnit, timeOfDay } from '../../lib/format';
import type { Unit } from '../unit';

const MINUTE_MS = 60_000;
const TO_THE_SECOND_MS = 60 * MINUTE_MS;

/** The time of a reading, `10:42:07`, or the span of a mean, `Nov 23, 2026 14:00 – 14:15`. */
export function momentText(at_ms: number, mean_ms: number, now_ms: number): string {
  if (mean_ms === 0) {
    return formatSince(at_ms, now_ms);
  }
  // Points begin at multiples of their length.
  const from_ms = Math.floor(at_ms / mean_ms) * mean_ms;
  const time = mean_ms % MINUTE_MS === 0 ? hourAndMinute : timeOfDay;
  return `${formatSince(from_ms, now_ms, time)} – ${time(from_ms + mean_ms)}`;
}

/** `71 – 100 %`; empty where the value is a reading itself, or both are written alike. */
export function rangeText(unit: Unit, range: readonly [low: number, high: number] | null): string {
  if (range === null) {
    return '';
  }
  const [low, high] = range.map(unit.text) as [string, string];
  const [number, name] = splitUnit(low);
  const isSameUnit = name !== '' && name === splitUnit(high)[1];
  return low === high ? '' : `${isSameUnit ? number : low} – ${high}`;
}

/**
 * From one moment to another, with the date of the second where it is another day; a long span to
 * the minute.
 */
export function spanText(
  from_ms: number,
  to_ms: number,
  now_ms: number,
): [from: string, to: string] {
  const isOneDay = new Date(from_ms).toDateString() === new Date(to_ms).toDateString();
  const time = to_ms - from_ms < TO_THE_SECOND_MS ? timeOfDay : hourAndMinute;
  return [
    formatSince(from_ms, now_ms, time),
    isOneDay ? time(to_ms) : formatSince(to_ms, now_ms, time),
  ];
}
