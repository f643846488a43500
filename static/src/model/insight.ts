/** What follows from the last minutes and no single sample tells: memory that will not last. */

import { duration, memorySize } from '../lib/format';
import { slopeOf } from '../lib/slope';
import type { Timeline } from '../lib/timeline';
import { trans } from '../lib/translation';
import { seriesKey, type GpuView } from './gpu';
import { TREND_MS, type Grower } from './growth';
import type { HolderRow } from './holders';
import { valueOf } from './reading';
import type { Description } from './describe';

/** A forecast from less than this is a guess. */
const TREND_LEAST_MS = 20_000;
/** Growth that has slowed down during this time is no trend. */
const RECENT_MS = 8000;
/** Who has less than this share of the growth is not named. */
const NAMED_SHARE = 0.2;
const NAMED_MOST = 2;

/** When a GPU's memory will be full. */
export interface Forecast {
  left_ms: number;
  /** How fast it grows. */
  bytes_per_ms: number;
}

/**
 * When a GPU's memory will be full; `null` where it will not be within `horizon_ms`, or where the server says that it
 * nearly is.
 */
export function forecastOf(gpu: GpuView, timeline: Timeline, horizon_ms: number): Forecast | null {
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
  if (trend * 60_000 < 0.01 * total || left / trend > horizon_ms) {
    return null;
  }
  return { left_ms: Math.max(0, left / trend), bytes_per_ms: trend };
}

/** A forecast in words, with the names of those of `growers` that most of the growth is due to. */
export function describeForecast(
  { left_ms, bytes_per_ms }: Forecast,
  growers: readonly Grower[],
  nameOf: (row: HolderRow) => string = (row) => row.name,
): Description {
  const named = growers.filter((one) => one.bytes_per_ms >= NAMED_SHARE * bytes_per_ms).slice(0, NAMED_MOST);
  const [first, ...others] = named;
  const more = others.map((one) => `, ${nameOf(one.row)} ${rate(one.bytes_per_ms)}`).join('');
  const speed = `${rate(first?.bytes_per_ms ?? bytes_per_ms)}${more}`;
  const name = first === undefined ? null : nameOf(first.row);
  return {
    text: left_ms < 5000 ? describeFull(name, speed) : describeFilling(rough(left_ms), name, speed),
    title: trans.__('Estimated from the growth over the last 30 s.'),
    level: left_ms < 60_000 ? 'act' : 'warn',
  };
}

function describeFull(name: string | null, speed: string): string {
  return name === null ? trans.__('memory full: grew %1', speed) : trans.__('memory full: %1 grew %2', name, speed);
}

function describeFilling(left: string, name: string | null, speed: string): string {
  return name === null
    ? trans.__('memory full in about %1: grows %2', left, speed)
    : trans.__('memory full in about %1: %2 grows %3', left, name, speed);
}

function rate(bytes_per_ms: number): string {
  return `${memorySize(bytes_per_ms * 1000)}/s`;
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

/** A forecast has no more than one digit worth telling. */
function rough(ms: number): string {
  return ms < 60_000 ? duration(Math.ceil(ms / 10_000) * 10_000) : duration(Math.round(ms / 60_000) * 60_000);
}
