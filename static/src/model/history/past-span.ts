/** A part of the past as the server told it, as series that charts can draw. */

import type { Extremes } from '../../lib/timeline';
import type { HistorySpan, Series } from '../../wire';
import { seriesKey } from '../gpu';

/** What was asked for; the server answers what it knows of it. */
export interface AskedSpan {
  from_ms: number;
  to_ms: number;
  points: number;
  metrics: readonly string[];
}

/** One series: a value for each time, and what lies behind it where it is a mean. */
interface PastSeries {
  values: Float64Array;
  extremes: Extremes | null;
}

/** Nothing is known between points that are further apart than so, in steps of the answer. */
const GAP_STEPS = 1.5;
/** The place of a point that says that nothing is known between its neighbors. */
const HOLE = -1;

export class PastSpan {
  /** Of points, and of holes where there are none for some time. */
  readonly times_ms: Float64Array;
  readonly gap_ms: number;
  /** Whether each point sums up some time; else it is a sample. */
  readonly areMeans: boolean;
  /** The place in the answer of each time. */
  private readonly places: readonly number[];
  private readonly told = new Map<string, Series>();
  private readonly made = new Map<string, PastSeries>();

  /** Samples further apart than `sampleGap_ms` have a gap between them. */
  constructor(
    readonly asked: AskedSpan,
    readonly answer: HistorySpan,
    sampleGap_ms: number,
  ) {
    const { resolution_ms, times_ms, oldest_ms, to_ms, gpus, mig_devices = [], host = {} } = answer;
    for (const { uuid, metrics } of [...gpus, ...mig_devices]) {
      for (const [id, series] of Object.entries(metrics)) {
        this.told.set(seriesKey({ index: -1, uuid }, id), series);
      }
    }
    for (const [id, series] of Object.entries(host)) {
      this.told.set(id, series);
    }
    this.areMeans = [...this.told.values()].some(({ min }) => min !== undefined);
    this.gap_ms = Math.max(GAP_STEPS * resolution_ms, sampleGap_ms);
    // What is the mean of some time is in its middle; the first and the last point have known less of theirs.
    const middle = (from_ms: number): number =>
      (Math.max(from_ms, Math.min(oldest_ms, from_ms + resolution_ms)) +
        Math.max(from_ms, Math.min(to_ms, from_ms + resolution_ms))) /
      2;
    const times: number[] = [];
    const places: number[] = [];
    times_ms.forEach((time_ms, place) => {
      const at_ms = this.areMeans ? middle(time_ms) : time_ms;
      if (time_ms - (times_ms[place - 1] ?? Infinity) > this.gap_ms) {
        times.push((times.at(-1) ?? 0) + 1);
        places.push(HOLE);
      }
      times.push(at_ms);
      places.push(place);
    });
    this.times_ms = Float64Array.from(times);
    this.places = places;
  }

  /** The series of this name; `null` where nothing was told of it. */
  series(key: string): PastSeries | null {
    const made = this.made.get(key);
    const told = this.told.get(key);
    if (made !== undefined || told === undefined) {
      return made ?? null;
    }
    const { values, min, max } = told;
    const series = {
      values: this.column(values),
      extremes:
        min === undefined || max === undefined
          ? null
          : { low: this.column(min), high: this.column(max) },
    };
    this.made.set(key, series);
    return series;
  }

  private column(values: readonly (number | null)[]): Float64Array {
    return Float64Array.from(this.places, (place) => values[place] ?? NaN);
  }
}
