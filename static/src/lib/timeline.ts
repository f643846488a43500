/** Many series on one time axis, oldest first, of bounded length. A hole in time is a hole in every series. */

/** Values of one series: one per time, `null` where there was none. */
export type Values = (number | null)[];

/** Keeps the newest `capacity` moments. Its arrays are handed out as they are, for charts to read and not to change. */
export class Timeline {
  /** Milliseconds since the Unix epoch. */
  readonly times_ms: number[] = [];
  private readonly series = new Map<string, Values>();

  constructor(private readonly capacity: number) {}

  /** The values under `key`; an unknown key has `null` everywhere. */
  values(key: string): Values {
    let values = this.series.get(key);
    if (values === undefined) {
      values = this.times_ms.map(() => null);
      this.series.set(key, values);
    }
    return values;
  }

  /**
   * Adds one moment. Where it comes more than `gap_ms` after the newest, a hole goes between them; where it is not
   * newer than the newest, it is left out.
   */
  push(at_ms: number, moment: ReadonlyMap<string, number | null>, gap_ms: number): void {
    const newest = this.times_ms.at(-1);
    if (newest !== undefined && at_ms <= newest) {
      return;
    }
    if (newest !== undefined && at_ms - newest > gap_ms) {
      this.append(newest + 1, new Map());
    }
    this.append(at_ms, moment);
    this.trim();
  }

  /** Forgets everything and takes these series instead, with a hole wherever two times are more than `gap_ms` apart. */
  replace(times_ms: readonly number[], series: ReadonlyMap<string, readonly (number | null)[]>, gap_ms: number): void {
    this.times_ms.length = 0;
    for (const values of this.series.values()) {
      values.length = 0;
    }
    times_ms.forEach((at_ms, i) => {
      const moment = new Map<string, number | null>();
      for (const [key, values] of series) {
        moment.set(key, values[i] ?? null);
      }
      this.push(at_ms, moment, gap_ms);
    });
  }

  private append(at_ms: number, moment: ReadonlyMap<string, number | null>): void {
    for (const key of moment.keys()) {
      this.values(key);
    }
    this.times_ms.push(at_ms);
    for (const [key, values] of this.series) {
      values.push(moment.get(key) ?? null);
    }
  }

  /** Cuts a tenth at a time, so that the arrays are not moved for every moment. */
  private trim(): void {
    if (this.times_ms.length <= this.capacity * 1.1) {
      return;
    }
    const surplus = this.times_ms.length - this.capacity;
    this.times_ms.splice(0, surplus);
    for (const values of this.series.values()) {
      values.splice(0, surplus);
    }
  }
}

/** The place of the time nearest to `at_ms`, no further from it than `within_ms`; -1 where there is none. */
export function placeAt(times_ms: readonly number[], at_ms: number, within_ms: number): number {
  const place = nearest(times_ms, at_ms);
  const time = times_ms[place];
  return time === undefined || Math.abs(time - at_ms) > within_ms ? -1 : place;
}

/** The place of the time nearest to `at_ms`; -1 where there is none at all. */
function nearest(times_ms: readonly number[], at_ms: number): number {
  if (times_ms.length === 0) {
    return -1;
  }
  let low = 0;
  let high = times_ms.length - 1;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((times_ms[middle] ?? 0) < at_ms) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  const before = times_ms[low - 1];
  const here = times_ms[low] ?? 0;
  return before !== undefined && at_ms - before < here - at_ms ? low - 1 : low;
}
