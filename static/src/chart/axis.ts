/** Where the axis of values begins and ends. */

import { firstAfter } from '../lib/timeline';
import type { ChartLine, TimeWindow } from './content';
import { roundRange, roundUp } from './ticks';

/** What is known of an axis before there are values. */
export interface AxisEnds {
  floor: number;
  /** The upper end where no limit is known; the end of a share always. */
  ceiling: number;
  /** Numbers are round in units of it. */
  base: number;
  /** Whether no value is ever above `ceiling`. */
  bounded: boolean;
}

type Range = readonly [floor: number, ceiling: number];

/** The axis as it is unless somebody zooms: up to the limit, and further where there are values. */
export function wholeAxis(
  ends: AxisEnds,
  limit: number | null,
  lines: readonly ChartLine[],
  window: TimeWindow,
): Range {
  const { floor, base } = ends;
  const isMemory = base !== 1;
  if (ends.bounded || (isMemory && limit !== null)) {
    return [floor, ends.bounded ? ends.ceiling : Math.max(ends.ceiling, limit ?? 0)];
  }
  // A little air above a limit that values may touch.
  const ceiling = Math.max(ends.ceiling, (limit ?? 0) * 1.06);
  const [lowest, highest] = extentOf(lines, window) ?? [floor, ceiling];
  if (highest > ceiling && limit === null && floor === 0) {
    return [floor, roundUp(highest, base)];
  }
  const step = roundUp((Math.max(highest, ceiling) - Math.min(lowest, floor)) / 10, base);
  return [
    lowest < floor ? Math.floor(lowest / step) * step : floor,
    highest > ceiling ? Math.ceil(highest / step) * step : ceiling,
  ];
}

/** The axis that shows no more than there is; what is stacked stands on its floor. */
export function fittedAxis(
  { floor, base }: AxisEnds,
  isStacked: boolean,
  lines: readonly ChartLine[],
  window: TimeWindow,
): Range | null {
  const extent = extentOf(lines, window);
  return extent && roundRange(isStacked ? floor : extent[0], extent[1], base);
}

/** The lowest and the highest value that are shown; `null` where there is none. */
function extentOf(
  lines: readonly ChartLine[],
  window: TimeWindow,
): [lowest: number, highest: number] | null {
  let [lowest, highest] = [Infinity, -Infinity];
  for (const { values, extremes, times_ms = window.times_ms } of lines) {
    const { low, high } = extremes ?? { low: values, high: values };
    const end = firstAfter(times_ms, window.to_ms);
    for (let i = firstAfter(times_ms, window.from_ms); i < end; i += 1) {
      const [least = NaN, most = NaN] = [low[i], high[i]];
      highest = most > highest ? most : highest;
      lowest = least < lowest ? least : lowest;
    }
  }
  return lowest > highest ? null : [lowest, highest];
}
