/** The range of a chart's value axis. */

import { indexAfter } from '../lib/timeline';
import type { ChartLine, TimeWindow } from './content';
import { roundRange, roundUp } from './ticks';

/** The properties of a value axis that do not depend on the values. */
export interface AxisEnds {
  floor: number;
  /** The upper end of the axis if no limit is known. Axes of percentages always end there. */
  ceiling: number;
  /** The unit in which axis labels are round numbers. */
  base: number;
  /** Whether no value is ever above `ceiling`. */
  bounded: boolean;
}

type Range = readonly [floor: number, ceiling: number];

/**
 * Returns the range of an unzoomed axis: up to the limit, or further if there are higher values.
 */
export function computeWholeAxis(
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
  // The axis has some room above a limit that values may reach.
  const ceiling = Math.max(ends.ceiling, (limit ?? 0) * 1.06);
  const [lowest, highest] = findExtent(lines, window) ?? [floor, ceiling];
  if (highest > ceiling && limit === null && floor === 0) {
    return [floor, roundUp(highest, base)];
  }
  const step = roundUp((Math.max(highest, ceiling) - Math.min(lowest, floor)) / 10, base);
  return [
    lowest < floor ? Math.floor(lowest / step) * step : floor,
    highest > ceiling ? Math.ceil(highest / step) * step : ceiling,
  ];
}

/**
 * Returns the smallest range that shows all values, or `null` if there are none. A stacked chart
 * starts at `floor`.
 */
export function computeFittedAxis(
  { floor, base }: AxisEnds,
  isStacked: boolean,
  lines: readonly ChartLine[],
  window: TimeWindow,
): Range | null {
  const extent = findExtent(lines, window);
  return extent && roundRange(isStacked ? floor : extent[0], extent[1], base);
}

/** Returns the lowest and the highest visible value, or `null` if there are none. */
function findExtent(
  lines: readonly ChartLine[],
  window: TimeWindow,
): [lowest: number, highest: number] | null {
  let [lowest, highest] = [Infinity, -Infinity];
  for (const { values, extremes, times_ms = window.times_ms } of lines) {
    const { low, high } = extremes ?? { low: values, high: values };
    const end = indexAfter(times_ms, window.to_ms);
    for (let i = indexAfter(times_ms, window.from_ms); i < end; i += 1) {
      const [least = NaN, most = NaN] = [low[i], high[i]];
      highest = most > highest ? most : highest;
      lowest = least < lowest ? least : lowest;
    }
  }
  return lowest > highest ? null : [lowest, highest];
}
