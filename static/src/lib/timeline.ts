/**
 * Many series on one time axis, oldest first, of bounded length. A hole in time is a hole in every
 * series.
 */

/** A value for each of some times; `null` where there was none. */
export type Column = readonly (number | null)[];

/** Series on one axis of time. */
export interface SeriesSource {
  /** Milliseconds since the Unix epoch, the oldest first. */
  readonly times_ms: Float64Array;
  /** Another where more became known of the past than the newest moment. */
  readonly revision: number | string;
  /** The values under `key`, one for each time, NaN where there was none. */
  values: (key: string) => Float64Array;
  /** What lies behind values that are means; left out, or `null`, where each is one reading. */
  extremes?: (key: string) => Extremes | null;
}

/** The lowest and the highest reading in the time that each value is the mean of. */
export interface Extremes {
  low: Float64Array;
  high: Float64Array;
}

/** The room that a series has at first; it grows as it is needed. */
const INITIAL_CAPACITY = 256;

/**
 * Keeps the newest `capacity` moments. What it hands out is for charts to read at once: the next
 * moment may move it.
 */
export class Timeline implements SeriesSource {
  /** Counts the times that more became known of the past than the newest moment. */
  revision = 0;
  private length = 0;
  private allocated = INITIAL_CAPACITY;
  private times = new Float64Array(INITIAL_CAPACITY);
  private readonly series = new Map<string, Float64Array>();
  /** Of moments that stand for some time: how far their neighbors may be from them. */
  private readonly reach_ms = new Map<number, number>();

  constructor(private readonly capacity: number) {}

  /** Milliseconds since the Unix epoch. */
  get times_ms(): Float64Array {
    return this.times.subarray(0, this.length);
  }

  /** The values under `key`, NaN where there was none; an unknown key has none at all. */
  values(key: string): Float64Array {
    return this.storage(key).subarray(0, this.length);
  }

  /**
   * Adds one moment. Where it comes more than `gap_ms` after the newest, a hole goes between them;
   * where it is not newer than the newest, it is left out.
   */
  push(at_ms: number, moment: ReadonlyMap<string, number | null>, gap_ms: number): void {
    const newest = this.times_ms.at(-1);
    if (newest !== undefined && at_ms <= newest) {
      return;
    }
    const { reach_ms } = this;
    const apart_ms = Math.max(gap_ms, reach_ms.get(at_ms) ?? 0, reach_ms.get(newest ?? at_ms) ?? 0);
    if (newest !== undefined && at_ms - newest > apart_ms) {
      this.append(newest + 1, new Map());
    }
    this.append(at_ms, moment);
  }

  /**
   * Fills in what was missed. Two moments within `same_ms` are one; of those that are known here,
   * only what is not known yet is taken, from the nearest within `near_ms`. The first ones can be
   * means of some time each: so many, whose neighbors may be so far from them.
   */
  merge(
    times_ms: readonly number[],
    columns: ReadonlyMap<string, Column>,
    same_ms: number,
    near_ms: number,
    gap_ms: number,
    means: { count: number; reach_ms: number } = { count: 0, reach_ms: 0 },
  ): void {
    const given = (index: number, into: Map<string, number | null>): Map<string, number | null> => {
      for (const [key, column] of columns) {
        const value = column[index] ?? null;
        if (value !== null && !into.has(key)) {
          into.set(key, value);
        }
      }
      return into;
    };
    const known = this.moments();
    const rows = known.map(([at_ms, moment]) => {
      const near = indexAt(times_ms, at_ms, near_ms);
      return [at_ms, near < 0 ? moment : given(near, moment)] as const;
    });
    const own_ms = known.map(([at_ms]) => at_ms);
    times_ms.forEach((at_ms, index) => {
      if (indexAt(own_ms, at_ms, same_ms) < 0) {
        rows.push([at_ms, given(index, new Map())]);
        if (index < means.count) {
          this.reach_ms.set(at_ms, means.reach_ms);
        }
      }
    });
    for (const at_ms of this.reach_ms.keys()) {
      if (at_ms < (own_ms[0] ?? 0) && at_ms < (times_ms[0] ?? 0)) {
        this.reach_ms.delete(at_ms);
      }
    }
    this.length = 0;
    this.revision += 1;
    for (const [at_ms, moment] of rows.sort(([a], [b]) => a - b)) {
      this.push(at_ms, moment, gap_ms);
    }
  }

  clear(): void {
    this.length = 0;
    this.revision += 1;
    this.series.clear();
    this.reach_ms.clear();
  }

  /** What is known of each moment; the holes of `push` are none. */
  private moments(): [number, Map<string, number | null>][] {
    const moments: [number, Map<string, number | null>][] = [];
    for (const at_ms of this.times_ms) {
      moments.push([at_ms, new Map<string, number | null>()]);
    }
    for (const [key, values] of this.series) {
      moments.forEach(([, moment], index) => {
        const value = values[index] ?? NaN;
        if (!Number.isNaN(value)) {
          moment.set(key, value);
        }
      });
    }
    return moments.filter(
      ([at_ms, { size }], index) => size > 0 || at_ms - 1 !== moments[index - 1]?.[0],
    );
  }

  /** Lets go of series of which nothing is left, as those of processes that have ended. */
  private forgetEmpty(): void {
    for (const [key, values] of this.series) {
      if (values.subarray(0, this.length).every(Number.isNaN)) {
        this.series.delete(key);
      }
    }
  }

  private append(at_ms: number, moment: ReadonlyMap<string, number | null>): void {
    this.ensureCapacity();
    for (const values of this.series.values()) {
      values[this.length] = NaN;
    }
    for (const [key, value] of moment) {
      this.storage(key)[this.length] = value ?? NaN;
    }
    this.times[this.length] = at_ms;
    this.length += 1;
  }

  private storage(key: string): Float64Array {
    let values = this.series.get(key);
    if (values === undefined) {
      values = new Float64Array(this.allocated).fill(NaN);
      this.series.set(key, values);
    }
    return values;
  }

  /**
   * Grows by halves up to what may be kept, and then forgets a tenth at a time, so that little is
   * moved.
   */
  private ensureCapacity(): void {
    if (this.length < this.allocated) {
      return;
    }
    if (this.length >= this.capacity * 1.1) {
      const surplus = this.length - this.capacity;
      for (const values of [this.times, ...this.series.values()]) {
        values.copyWithin(0, surplus, this.length);
      }
      this.length = this.capacity;
      this.forgetEmpty();
      return;
    }
    this.allocated = Math.min(Math.ceil(this.allocated * 1.5), Math.ceil(this.capacity * 1.1));
    this.times = grown(this.times, this.allocated);
    for (const [key, values] of this.series) {
      this.series.set(key, grown(values, this.allocated));
    }
  }
}

/** The place of the first time after `at_ms`. */
export function firstAfter(times_ms: ArrayLike<number>, at_ms: number): number {
  let low = 0;
  let high = times_ms.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times_ms[middle] ?? 0) <= at_ms) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/**
 * The place of the time nearest to `at_ms`, no further from it than `within_ms`; -1 where there is
 * none.
 */
export function indexAt(times_ms: ArrayLike<number>, at_ms: number, within_ms: number): number {
  const after = firstAfter(times_ms, at_ms);
  const distance = (index: number): number => Math.abs((times_ms[index] ?? Infinity) - at_ms);
  const index = distance(after - 1) <= distance(after) ? after - 1 : after;
  return distance(index) <= within_ms ? index : -1;
}

/**
 * Whether no two neighbors of these times, from the last before `from_ms` to the first after
 * `to_ms`, are further apart than `gap_ms`.
 */
export function isUnbroken(
  times_ms: ArrayLike<number>,
  from_ms: number,
  to_ms: number,
  gap_ms: number,
): boolean {
  const end = Math.min(times_ms.length - 1, firstAfter(times_ms, to_ms));
  for (let i = Math.max(1, firstAfter(times_ms, from_ms)); i <= end; i += 1) {
    if ((times_ms[i] ?? 0) - (times_ms[i - 1] ?? 0) > gap_ms) {
      return false;
    }
  }
  return true;
}

function grown(values: Float64Array, capacity: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(capacity).fill(NaN);
  larger.set(values);
  return larger;
}
