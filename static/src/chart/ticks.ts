/** Axis ticks: at round numbers, and at round local times. */

const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;
const TIME_STEPS_MS = [
  ...[1, 2, 5, 10, 15, 30].map((n) => n * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((n) => n * MINUTE),
  ...[1, 2, 3, 6, 12].map((n) => n * HOUR),
];

/** No more than `most` round numbers from `min` to `max`; round in units of `base`, as GiB. */
export function valueTicks(min: number, max: number, most: number, base = 1): number[] {
  const least = (max - min) / base / Math.max(1, most);
  if (!(least > 0) || !Number.isFinite(least)) {
    return [];
  }
  const power = 10 ** Math.floor(Math.log10(least));
  const step = ([1, 2, 5].find((factor) => factor * power >= least) ?? 10) * power * base;
  const ticks: number[] = [];
  for (let n = Math.ceil(min / step); n * step <= max; n += 1) {
    ticks.push(n * step);
  }
  return ticks;
}

/** Round numbers around `low` and `high`, a few steps apart, so that an axis does not change with every sample. */
export function roundRange(low: number, high: number, base = 1): [floor: number, ceiling: number] {
  const least = Math.max(high - low, Math.abs(high) * 1e-3, base * 1e-3);
  const step = roundUp(least / 4, base);
  const floor = Math.floor(low / step) * step;
  return [floor, Math.max(floor + step, Math.ceil(high / step) * step)];
}

/** The largest of few round numbers that `value` does not pass, so that an axis does not change with every sample. */
export function roundUp(value: number, base = 1): number {
  const power = 10 ** Math.floor(Math.log10(value / base));
  return ([1, 2, 5].find((factor) => factor * power * base >= value) ?? 10) * power * base;
}

/** No more than `most` round times from `from_ms` to `to_ms`, and the time between them. */
export function timeTicks(from_ms: number, to_ms: number, most: number): { step_ms: number; times_ms: number[] } {
  const least_ms = (to_ms - from_ms) / Math.max(1, most);
  const step_ms = TIME_STEPS_MS.find((step) => step >= least_ms) ?? Math.ceil(least_ms / DAY) * DAY;
  // Hours and days are round in local time.
  const zone_ms = new Date(from_ms).getTimezoneOffset() * MINUTE;
  const times_ms: number[] = [];
  for (let at = Math.ceil((from_ms - zone_ms) / step_ms) * step_ms + zone_ms; at <= to_ms; at += step_ms) {
    times_ms.push(at);
  }
  return { step_ms, times_ms };
}
