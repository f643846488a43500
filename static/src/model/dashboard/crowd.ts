/** A chart of many GPUs: their median, the range of most GPUs, and the lines outside this range. */

import { indexAfter, type Extremes, type SeriesSource } from '../../lib/timeline';
import { trans } from '../../lib/translation';
import { valueOf } from '../reading';
import type { Plot, PlotLine } from './plots';

/** The maximum number of lines that are drawn individually. */
export const MAX_SINGLE_LINES = 12;
/** The ID of the line that shows the median. */
export const MEDIAN_ID = 'median';
/** The maximum number of lines that are drawn over the band. */
const MAX_LINES_ON_TOP = 4;
/** Lines are compared with the band at up to this many visible times. */
const MAX_COMPARED_TIMES = 32;
/** The minimum distance of an outlier from the band, as a share of the axis. */
const MIN_DISTANCE = 0.05;

/** The median and quantiles of all lines at each time. */
export interface Quantiles extends Extremes {
  times_ms: Float64Array;
  median: Float64Array;
}

const NO_VALUES = new Float64Array();

/** Computes quantiles of lines, and caches them by time. */
export class LineCrowd {
  private key = '';
  private known: Quantiles = {
    times_ms: NO_VALUES,
    median: NO_VALUES,
    low: NO_VALUES,
    high: NO_VALUES,
  };

  /**
   * Returns the lines that summarize `plot`: the median with its band, the lines that the user has
   * selected (`chosen`), and the outliers. If only a few lines are visible, the median and all of
   * these lines are returned.
   */
  selectLines(
    { lines, unit, limit }: Pick<Plot, 'lines' | 'unit' | 'limit'>,
    source: SeriesSource,
    span: { from_ms: number; to_ms: number },
    hidden: ReadonlySet<string>,
    chosen: readonly (string | null)[],
  ): PlotLine[] {
    const columns = lines.map(({ series }) => source.values(series));
    const key = [source.revision, ...lines.map(({ series }) => series)].join();
    const { median, ...extremes } = this.quantilesOf(source.times_ms, columns, key);
    const now = Float64Array.from(lines.flatMap((line) => valueOf(line.now) ?? [])).sort();
    const line: PlotLine = {
      id: MEDIAN_ID,
      label: trans.__('Median'),
      color: 'text',
      series: MEDIAN_ID,
      field: '',
      now: now.length === 0 ? null : quantileOf(now, 0.5),
      own: { values: median, extremes },
    };
    const shown = lines.filter(({ id }) => !hidden.has(id));
    const scale = (limit ?? unit.ceiling) - unit.floor;
    const onTop =
      shown.length <= MAX_LINES_ON_TOP
        ? shown
        : findOutlierIndexes(columns, this.known, span, scale).map((index) => lines[index]);
    const ids = new Set([...onTop.map((one) => one?.id), ...chosen]);
    return [line, ...shown.filter(({ id }) => ids.has(id))];
  }

  /**
   * Returns the quantiles at all times. While `key` stays the same, only new times are computed.
   */
  quantilesOf(times_ms: Float64Array, columns: readonly Float64Array[], key: string): Quantiles {
    const { known } = this;
    const first = indexAfter(known.times_ms, (times_ms[0] ?? 0) - 1);
    const count = known.times_ms.length - first;
    const isSame =
      key === this.key &&
      known.times_ms[first] === times_ms[0] &&
      known.times_ms.at(-1) === times_ms[count - 1];
    if (isSame && first === 0 && count === times_ms.length) {
      return known;
    }
    const begin = isSame ? count : 0;
    const kept = (values: Float64Array): Float64Array => {
      const all = new Float64Array(times_ms.length);
      all.set(values.subarray(first, first + begin));
      return all;
    };
    const [low, median, high] = [kept(known.low), kept(known.median), kept(known.high)];
    const row = new Float64Array(columns.length);
    for (let i = begin; i < times_ms.length; i += 1) {
      let size = 0;
      for (const values of columns) {
        const value = values[i] ?? NaN;
        if (!Number.isNaN(value)) {
          row[size] = value;
          size += 1;
        }
      }
      const sorted = row.subarray(0, size).sort();
      low[i] = quantileOf(sorted, 0.1);
      median[i] = quantileOf(sorted, 0.5);
      high[i] = quantileOf(sorted, 0.9);
    }
    this.key = key;
    this.known = { times_ms: times_ms.slice(), median, low, high };
    return this.known;
  }
}

/**
 * Returns the indexes of outliers, the farthest first. For at least half of the times, a line must
 * be outside the band, and its distance from the band must exceed the band's width and a share of
 * `scale`.
 */
export function findOutlierIndexes(
  columns: readonly Float64Array[],
  { times_ms, low, high }: Quantiles,
  { from_ms, to_ms }: { from_ms: number; to_ms: number },
  scale: number,
): number[] {
  const begin = indexAfter(times_ms, from_ms);
  const end = indexAfter(times_ms, to_ms);
  const step = Math.max(1, Math.ceil((end - begin) / MAX_COMPARED_TIMES));
  const found = columns.map((values, place) => {
    let [known, outside, distance] = [0, 0, 0];
    for (let i = end - 1; i >= begin; i -= step) {
      const [value = NaN, bottom = NaN, top = NaN] = [values[i], low[i], high[i]];
      const beyond = Math.max(bottom - value, value - top);
      known += Number.isNaN(beyond) ? 0 : 1;
      if (beyond > Math.max(top - bottom, MIN_DISTANCE * scale)) {
        outside += 1;
        distance += beyond;
      }
    }
    return { place, isOutside: outside > 0 && 2 * outside >= known, distance };
  });
  return found
    .filter(({ isOutside }) => isOutside)
    .sort((a, b) => b.distance - a.distance)
    .slice(0, MAX_LINES_ON_TOP)
    .map(({ place }) => place);
}

/** Returns a quantile of sorted values, or NaN if there are none. */
function quantileOf(sorted: Float64Array, share: number): number {
  const place = (sorted.length - 1) * share;
  const [below = NaN, above = below] = [sorted[Math.floor(place)], sorted[Math.ceil(place)]];
  return below + (above - below) * (place - Math.floor(place));
}
