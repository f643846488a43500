/**
 * Time series with a common time axis, oldest first, with a maximum length. A gap in time is a gap
 * in every series.
 */

/** The values at a list of times; `null` where there was none. */
export type Column = readonly (number | null)[];

/** Time series with a common time axis. */
export interface SeriesSource {
  /** The times in milliseconds since the Unix epoch, oldest first. */
  readonly times_ms: Float64Array;
  /** The version of the data, which changes when older data are added. */
  readonly revision: number | string;
  /** Returns the values of the series `key`, one for each time. NaN stands for a missing value. */
  values: (key: string) => Float64Array;
  /**
   * For a series of means, returns the lowest and the highest reading behind each mean. Returns
   * `null` if each value is a single reading.
   */
  readExtremes?: (key: string) => Extremes | null;
}

/** The lowest and the highest reading in the time range of each mean value. */
export interface Extremes {
  low: Float64Array;
  high: Float64Array;
}

/** The initial capacity of a series, which grows when needed. */
const INITIAL_CAPACITY = 256;

/**
 * Keeps the values at the newest `capacity` times. The returned arrays must be read immediately,
 * because the next call of `push` may overwrite them.
 */
export class Timeline implements SeriesSource {
  /** A counter that increases when older data are added or all data are cleared. */
  revision = 0;
  private length = 0;
  private allocated = INITIAL_CAPACITY;
  private times = new Float64Array(INITIAL_CAPACITY);
  private readonly series = new Map<string, Float64Array>();
  /**
   * The maximum distance between each mean value and its neighbors, by the time of the mean. Only a
   * greater distance counts as a gap.
   */
  private readonly reach_ms = new Map<number, number>();

  constructor(private readonly capacity: number) {}

  /** The times in milliseconds since the Unix epoch. */
  get times_ms(): Float64Array {
    return this.times.subarray(0, this.length);
  }

  /**
   * Returns the values of the series `key`. Missing values are NaN. If the series is unknown, all
   * values are NaN.
   */
  values(key: string): Float64Array {
    return this.getOrCreateSeries(key).subarray(0, this.length);
  }

  /**
   * Adds the values at one time. If the time is more than `gap_ms` after the newest time, a gap is
   * inserted between them. A time that is not after the newest one is ignored.
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
   * Adds older data. Two times count as the same if they differ by at most `same_ms`. If the
   * timeline already has a time but no value for it, the value of the nearest added time within
   * `near_ms` is used. The first `means.count` of the added times have mean values. Between such a
   * time and its neighbor, there is a gap only if they are more than `means.reach_ms` apart.
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
    const known = this.listValuesByTime();
    const rows = known.map(([at_ms, moment]) => {
      const near = nearestIndex(times_ms, at_ms, near_ms);
      return [at_ms, near < 0 ? moment : given(near, moment)] as const;
    });
    const own_ms = known.map(([at_ms]) => at_ms);
    times_ms.forEach((at_ms, index) => {
      if (nearestIndex(own_ms, at_ms, same_ms) < 0) {
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

  /** Returns the values at each time, without the gaps that `push` inserted. */
  private listValuesByTime(): [number, Map<string, number | null>][] {
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

  /** Removes empty series, for example of processes that have ended. */
  private removeEmptySeries(): void {
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
      this.getOrCreateSeries(key)[this.length] = value ?? NaN;
    }
    this.times[this.length] = at_ms;
    this.length += 1;
  }

  private getOrCreateSeries(key: string): Float64Array {
    let values = this.series.get(key);
    if (values === undefined) {
      values = new Float64Array(this.allocated).fill(NaN);
      this.series.set(key, values);
    }
    return values;
  }

  /**
   * Makes room in full arrays. They grow by half, up to the maximum length plus a tenth. When they
   * are full at that size, the oldest values beyond the maximum length are dropped all at once, so
   * that values are rarely moved.
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
      this.removeEmptySeries();
      return;
    }
    this.allocated = Math.min(Math.ceil(this.allocated * 1.5), Math.ceil(this.capacity * 1.1));
    this.times = growArray(this.times, this.allocated);
    for (const [key, values] of this.series) {
      this.series.set(key, growArray(values, this.allocated));
    }
  }
}

/** Returns the index of the first time after `at_ms`. */
export function indexAfter(times_ms: ArrayLike<number>, at_ms: number): number {
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

/** Returns the index of the time nearest to `at_ms`, or -1 if none is within `within_ms`. */
export function nearestIndex(
  times_ms: ArrayLike<number>,
  at_ms: number,
  within_ms: number,
): number {
  const after = indexAfter(times_ms, at_ms);
  const distance = (index: number): number => Math.abs((times_ms[index] ?? Infinity) - at_ms);
  const index = distance(after - 1) <= distance(after) ? after - 1 : after;
  return distance(index) <= within_ms ? index : -1;
}

/**
 * Returns whether there is no gap, which means that no two adjacent times are more than `gap_ms`
 * apart. The last time before `from_ms` and the first time after `to_ms` are also checked.
 */
export function hasNoGaps(
  times_ms: ArrayLike<number>,
  from_ms: number,
  to_ms: number,
  gap_ms: number,
): boolean {
  const end = Math.min(times_ms.length - 1, indexAfter(times_ms, to_ms));
  for (let i = Math.max(1, indexAfter(times_ms, from_ms)); i <= end; i += 1) {
    if ((times_ms[i] ?? 0) - (times_ms[i - 1] ?? 0) > gap_ms) {
      return false;
    }
  }
  return true;
}

function growArray(values: Float64Array, capacity: number): Float64Array<ArrayBuffer> {
  const larger = new Float64Array(capacity).fill(NaN);
  larger.set(values);
  return larger;
}
