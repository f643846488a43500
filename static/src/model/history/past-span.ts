/** A span from the server's history, and its combination with later samples for charts. */

import { indexAfter, type Extremes, type SeriesSource } from '../../lib/timeline';
import type { HistorySpan, Series } from '../../wire';
import { seriesByKey } from '../gpu';

/** The requested span. The server answers with the part that it has. */
export interface RequestedSpan {
  from_ms: number;
  to_ms: number;
  points: number;
  metrics: readonly string[];
}

/**
 * If points are farther apart than this number of steps of the response, there is a gap between
 * them.
 */
const GAP_STEPS = 1.5;
/** The index of a point that marks a gap. */
const GAP_INDEX = -1;

export class PastSpan {
  /** The times of points, and of the gaps between them. */
  readonly times_ms: Float64Array;
  readonly gap_ms: number;
  /** Whether each point is a mean instead of a single sample. */
  readonly areMeans: boolean;
  /** The index in the response of each time. */
  readonly places: readonly number[];
  /** The received series by name. */
  readonly series: ReadonlyMap<string, Series>;

  /** If samples are more than `sampleGap_ms` apart, there is a gap between them. */
  constructor(
    readonly asked: RequestedSpan,
    readonly answer: HistorySpan,
    sampleGap_ms: number,
  ) {
    const { resolution_ms, times_ms, oldest_ms, to_ms } = answer;
    this.series = seriesByKey(answer);
    this.areMeans = [...this.series.values()].some(({ min }) => min !== undefined);
    this.gap_ms = Math.max(GAP_STEPS * resolution_ms, sampleGap_ms);
    // A mean is drawn in the middle of its time range, which is shorter for the first and the last
    // point.
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
        places.push(GAP_INDEX);
      }
      times.push(at_ms);
      places.push(place);
    });
    this.times_ms = Float64Array.from(times);
    this.places = places;
  }
}

/**
 * A snapshot of a span and the live samples after it. Samples that are received later are not
 * included.
 */
export class JoinedSeries implements SeriesSource {
  readonly times_ms: Float64Array;
  /** The index of the first live sample after the span. */
  private readonly tail: number;
  /** The number of gaps between the past span and the live samples: 0 or 1. */
  private readonly holes: number;
  private readonly joined = new Map<string, Float64Array>();

  /** Samples after `to_ms` are omitted. */
  constructor(
    private readonly past: PastSpan,
    private readonly live: SeriesSource,
    readonly revision: string,
    to_ms: number,
  ) {
    const end_ms = past.answer.to_ms;
    const live_ms = live.times_ms;
    // One sample beyond the edge is included, so that lines extend to the edge.
    const liveEnd = to_ms <= end_ms ? 0 : Math.min(live_ms.length, indexAfter(live_ms, to_ms) + 1);
    this.tail = Math.min(liveEnd, indexAfter(live_ms, Math.max(end_ms, past.times_ms.at(-1) ?? 0)));
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

  readExtremes(key: string): Extremes | null {
    return this.past.series.get(key)?.min === undefined
      ? null
      : { low: this.join(key, 'min'), high: this.join(key, 'max') };
  }

  /** Returns a series of the span followed by the live values. */
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
