/** What follows from the last minutes and no single sample tells: memory that will not last. */

import { duration, significant } from '../lib/format';
import type { Timeline } from '../lib/timeline';
import { seriesKey, type GpuView } from './gpu';
import { valueOf } from './reading';
import type { Words } from './words';

const GIB = 1024 ** 3;
/** Growth is judged by this much of the past. */
const TREND_MS = 30_000;
/** A forecast from less than this is a guess. */
const TREND_LEAST_MS = 20_000;
/** Growth that has slowed down during this time is no trend. */
const RECENT_MS = 8000;
/** What is further away than this need not worry anybody yet. */
const FORECAST_MS = 5 * 60_000;

/** When a GPU's memory will be full; `null` where it will not be soon, or where the server says that it nearly is. */
export function memoryForecast(gpu: GpuView, timeline: Timeline): Words | null {
  const now = gpu.now;
  if (now?.health.state !== 'ok' || now.conditions.some(({ condition }) => condition === 'memory_nearly_full')) {
    return null;
  }
  const { memory } = now;
  const total = valueOf(memory.total_bytes);
  const used = valueOf(memory.used_bytes);
  const trend = trendOf(timeline.times_ms, timeline.values(seriesKey(gpu, 'memory.used_bytes')));
  if (total === null || used === null || trend === null) {
    return null;
  }
  // Bytes that the driver keeps are not there to be allocated.
  const left = total - used - (valueOf(memory.reserved_bytes) ?? 0);
  // Growth by less than a hundredth of the memory in a minute is noise.
  if (trend * 60_000 < 0.01 * total || left / trend > FORECAST_MS) {
    return null;
  }
  const rate = `${significant((trend * 1000) / GIB)} GiB/s`;
  const left_ms = Math.max(0, left / trend);
  return {
    text: left_ms < 5000 ? `memory is full: it grew ${rate}` : `memory full in about ${rough(left_ms)}: grows ${rate}`,
    title: 'Reckoned from the growth of the last 30 s.',
    level: left_ms < 60_000 ? 'act' : 'warn',
  };
}

/** The growth per millisecond, where it has been steady and still goes on; else `null`. */
function trendOf(times_ms: Float64Array, values: Float64Array): number | null {
  const whole = slopeOf(times_ms, values, TREND_MS);
  const recent = slopeOf(times_ms, values, RECENT_MS);
  if (whole === null || recent === null || whole.spanned_ms < TREND_LEAST_MS || whole.steadiness < 0.95) {
    return null;
  }
  // Loading a model grows steadily too, but it levels off: only growth that does not is a leak.
  return whole.slope <= 0 || recent.slope < 0.7 * whole.slope ? null : whole.slope;
}

interface Slope {
  /** Per millisecond. */
  slope: number;
  /** The share of the changes that a straight line explains, 0 to 1. */
  steadiness: number;
  spanned_ms: number;
}

/** A straight line through the newest `span_ms`, by least squares, as far back as there is no hole. */
function slopeOf(times_ms: Float64Array, values: Float64Array, span_ms: number): Slope | null {
  const end = times_ms.at(-1) ?? 0;
  let n = 0;
  let sumX = 0;
  let sumY = 0;
  let sumXX = 0;
  let sumXY = 0;
  let sumYY = 0;
  let spanned_ms = 0;
  for (let i = times_ms.length - 1; i >= 0; i -= 1) {
    const x = (times_ms[i] ?? 0) - end;
    const y = values[i] ?? NaN;
    if (x < -span_ms || Number.isNaN(y)) {
      break;
    }
    spanned_ms = -x;
    n += 1;
    sumX += x;
    sumY += y;
    sumXX += x * x;
    sumXY += x * y;
    sumYY += y * y;
  }
  const spreadX = n * sumXX - sumX * sumX;
  const spreadY = n * sumYY - sumY * sumY;
  const together = n * sumXY - sumX * sumY;
  if (n < 3 || spreadX <= 0) {
    return null;
  }
  const steadiness = spreadY <= 0 ? 1 : (together * together) / (spreadX * spreadY);
  return { slope: together / spreadX, steadiness, spanned_ms };
}

/** A forecast has no more than one digit worth telling. */
function rough(ms: number): string {
  return ms < 60_000 ? duration(Math.ceil(ms / 10_000) * 10_000) : duration(Math.round(ms / 60_000) * 60_000);
}
