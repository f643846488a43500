/** A part of the past from the server, with the samples that were received since, for charts. */

import { firstAfter, type Extremes, type SeriesSource } from '../../lib/timeline';
import type { HistorySpan, Series } from '../../wire';
import { seriesByKey } from '../gpu';

/** What was asked for; the server answers what it knows of it. */
export interface AskedSpan {
  from_ms: number;
  to_ms: number;
  points: number;
  metrics: readonly string[];
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
  readonly places: readonly number[];
  /** By name, as the server sent them. */
  readonly series: ReadonlyMap<string, Series>;

  /** Samples further apart than `sampleGap_ms` have a gap between them. */
  constructor(
    readonly asked: AskedSpan,
    readonly answer: HistorySpan,
    sampleGap_ms: number,
  ) {
    const { resolution_ms, times_ms, oldest_ms, to_ms } = answer;
    this.series = seriesByKey(answer);
    this.areMeans = [...this.series.values()].some(({ min }) => min !== undefined);
    this.gap_ms = Math.max(GAP_STEPS * resolution_ms, sampleGap_ms);
    // What is the mean of some time is in its middle; the first and the last point have known less
    // of theirs.
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
}

/** A view of one moment: samples that are received later are not in it. */
export class JoinedSeries implements SeriesSource {
  readonly times_ms: Float64Array;
  /** The first of the live times that are behind the span. */
  private readonly tail: number;
  /** How many holes stand between the two. */
  private readonly holes: number;
  private readonly joined = new Map<string, Float64Array>();

  /** Samples that were received after `to_ms` are not needed. */
  constructor(
    private readonly past: PastSpan,
    private readonly live: SeriesSource,
    readonly revision: string,
    to_ms: number,
  ) {
    const end_ms = past.answer.to_ms;
    const live_ms = live.times_ms;
    // One beyond the edge, so that lines go on to it.
    const liveEnd = to_ms <= end_ms ? 0 : Math.min(live_ms.length, firstAfter(live_ms, to_ms) + 1);
    this.tail = Math.min(liveEnd, firstAfter(live_ms, Math.max(end_ms, past.times_ms.at(-1) ?? 0)));
    const times = live_ms.subarray(this.tail, liveEnd);
    const [first] = times;
    const isApart = first !== undefined && first - end_ms > past.gap_ms;
    this.holes = isApart ? 1 : 0;
    const hole = isApart ? [(past.times_ms.at(-1) ?? end_ms) + 1] : [];
    this.times_ms = Float64Array.from([...past.times_ms, ...hole, ...times]);
  }

  values(key: string): Float64Array {
    return this.join(key, 'values');
  }

  extremes(key: string): Extremes | null {
    return this.past.series.get(key)?.min === undefined
      ? null
      : { low: this.join(key, 'min'), high: this.join(key, 'max') };
  }

  /** A part of a series of the past, and the live values behind it. */
  private join(key: string, part: keyof Series): Float64Array {
    const name = `${part} ${key}`;
    let joined = this.joined.get(name);
    if (joined === undefined) {
      const { places, series } = this.past;
      const past = series.get(key)?.[part] ?? [];
      const begin = places.length + this.holes;
      joined = new Float64Array(this.times_ms.length).fill(NaN);
      joined.set(places.map((place) => past[place] ?? NaN));
      joined.set(
        this.live.values(key).subarray(this.tail, this.tail + joined.length - begin),
        begin,
      );
      this.joined.set(name, joined);
    }
    return joined;
  }
}
