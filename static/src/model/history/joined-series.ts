/** What the server told of the past, and behind its end what has been received since. */

import { firstAfter, type Extremes, type SeriesSource } from '../../lib/timeline';
import type { PastSpan } from './past-span';

/** Of one moment: what is received later is not in it. */
export class JoinedSeries implements SeriesSource {
  readonly times_ms: Float64Array;
  /** The first of the live times that are behind the span. */
  private readonly tail: number;
  /** How many holes stand between the two. */
  private readonly holes: number;
  private readonly joined = new Map<string, Float64Array>();

  /** What was received after `to_ms` is not needed. */
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
    return this.join(key, key, this.past.series(key)?.values);
  }

  extremes(key: string): Extremes | null {
    const extremes = this.past.series(key)?.extremes ?? null;
    return (
      extremes && {
        low: this.join(`low ${key}`, key, extremes.low),
        high: this.join(`high ${key}`, key, extremes.high),
      }
    );
  }

  /** A column of the past, and the live values of `key` behind it. */
  private join(name: string, key: string, past: Float64Array | undefined): Float64Array {
    let joined = this.joined.get(name);
    if (joined === undefined) {
      const begin = this.past.times_ms.length + this.holes;
      joined = new Float64Array(this.times_ms.length).fill(NaN);
      joined.set(past ?? []);
      joined.set(
        this.live.values(key).subarray(this.tail, this.tail + joined.length - begin),
        begin,
      );
      this.joined.set(name, joined);
    }
    return joined;
  }
}
