/** The energy that GPUs drew in some time: from what the driver records every 20 ms, or else from samples. */

import { firstAfter, type Timeline } from '../lib/timeline';
import type { GpuSample } from '../wire';
import { seriesKey } from './gpu';
import { valueOf } from './reading';

/** What the driver recorded, by GPU, as the store keeps it. */
export type PowerTraces = ReadonlyMap<string, Timeline>;

/** A record stands for so much time on either side, where there is none beside it. */
const RECORD_MS = 100;

interface Span {
  from_ms: number;
  to_ms: number;
  /** As reckoned from samples; `null` where they do not tell the power. */
  joules: number | null;
}

/** Adds up the energy of the GPUs that somebody holds. */
export class EnergyMeter {
  /** By the key of the GPU's trace. */
  private readonly spans = new Map<string, Span>();

  /** The GPU was held from then to then; `before` is the sample at or before that time, `now` the one after it. */
  add(now: GpuSample, before: GpuSample | undefined, from_ms: number, to_ms: number): void {
    const key = seriesKey(now, 'power_watts');
    const watts = between(before === undefined ? null : wattsOf(before), wattsOf(now));
    const joules = watts === null ? null : (watts * (to_ms - from_ms)) / 1000;
    const span = this.spans.get(key) ?? { from_ms, to_ms, joules: null };
    span.to_ms = to_ms;
    span.joules = joules === null ? span.joules : (span.joules ?? 0) + joules;
    this.spans.set(key, span);
  }

  /** `null` where nothing tells the power. */
  joules(traces: PowerTraces): number | null {
    let sum: number | null = null;
    for (const [key, span] of this.spans) {
      const joules = recorded(traces, key, span) ?? span.joules;
      sum = joules === null ? sum : (sum ?? 0) + joules;
    }
    return sum;
  }

  /** Whether the driver's records tell all of it, which they do a second or two later. */
  isRecorded(traces: PowerTraces): boolean {
    return [...this.spans].every(([key, span]) => recorded(traces, key, span) !== null);
  }
}

/** The newest measurement, since an average over the last second is still that of the time before. */
function wattsOf(gpu: GpuSample): number | null {
  return valueOf(gpu.power.instant_watts) ?? valueOf(gpu.power.draw_watts);
}

function between(a: number | null, b: number | null): number | null {
  return a === null || b === null ? (a ?? b) : (a + b) / 2;
}

function recorded(traces: PowerTraces, key: string, { from_ms, to_ms }: Span): number | null {
  const trace = traces.get(key);
  return trace === undefined ? null : energyOf(trace.times_ms, trace.values(key), from_ms, to_ms);
}

/** The integral of power, in joules, along straight lines between records; `null` where some of the time has none. */
export function energyOf(
  times_ms: ArrayLike<number>,
  watts: ArrayLike<number>,
  from_ms: number,
  to_ms: number,
): number | null {
  let first = Math.max(firstAfter(times_ms, from_ms) - 1, 0);
  if (Number.isNaN(watts[first])) {
    // Nothing was recorded up to here.
    first += 1;
  }
  let [at_ms, power] = [Math.min(times_ms[first] ?? -Infinity, from_ms), watts[first] ?? NaN];
  const last_ms = times_ms[times_ms.length - 1] ?? -Infinity;
  if ((times_ms[first] ?? Infinity) > from_ms + RECORD_MS || last_ms < to_ms - RECORD_MS) {
    return null;
  }
  let joules = 0;
  for (let index = first; at_ms < to_ms; index += 1) {
    // The last record stands for what comes after it.
    const [next_ms, next] = [times_ms[index] ?? to_ms, watts[index] ?? power];
    joules += areaWithin(at_ms, power, next_ms, next, from_ms, to_ms);
    [at_ms, power] = [next_ms, next];
  }
  return Number.isNaN(joules) ? null : joules;
}

/** The part of the area below a straight line that lies between two times. */
function areaWithin(
  a_ms: number,
  a: number,
  b_ms: number,
  b: number,
  from_ms: number,
  to_ms: number,
): number {
  const [start_ms, end_ms] = [Math.max(a_ms, from_ms), Math.min(b_ms, to_ms)];
  if (end_ms <= start_ms) {
    return 0;
  }
  const middle = a + ((b - a) * ((start_ms + end_ms) / 2 - a_ms)) / (b_ms - a_ms);
  return (middle * (end_ms - start_ms)) / 1000;
}
