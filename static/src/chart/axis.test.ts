import { describe, expect, it } from 'vitest';

import { UNITS } from '../model/unit';
import { computeWholeAxis } from './axis';
import type { ChartLine, TimeWindow } from './content';

const TIMES = Float64Array.of(1000, 2000, 3000, 4000);
const WINDOW: TimeWindow = {
  times_ms: TIMES,
  revision: 0,
  from_ms: 1500,
  to_ms: 4000,
  gap_ms: 1500,
};

function createLines(...values: number[]): ChartLine[] {
  return [{ values: Float64Array.from(values), color: 'red' }];
}

function computeAxis(
  unit: keyof typeof UNITS,
  limit: number | null,
  ...values: number[]
): readonly number[] {
  return computeWholeAxis(UNITS[unit], limit, createLines(...values), WINDOW);
}

describe('value axis', () => {
  it('axis ends slightly above its limit', () => {
    expect(computeAxis('watts', 700, 100, 650, 700, 741)).toEqual([0, 742]);
    expect(computeAxis('celsius', 87, 40, 60, 86, 99)).toEqual([20, 100]);
    expect(computeAxis('bytes', 140 * 1024 ** 3, 0, 0, 0, 0)).toEqual([0, 140 * 1024 ** 3]);
  });

  it('axis shows all values and is stable', () => {
    expect(computeAxis('watts', 700, 100, 650, 751, 700)).toEqual([0, 800]);
    expect(computeAxis('watts', 700, 100, 650, 798, NaN)).toEqual([0, 800]);
    expect(computeAxis('watts', 700, 900, 650, 700, 700), 'what has left the window').toEqual([
      0, 742,
    ]);
    expect(computeAxis('celsius', 87, 40, 60, 103, 99)).toEqual([20, 110]);
    expect(computeAxis('celsius', null, 40, 60, 103, 99)).toEqual([20, 110]);
    expect(computeAxis('celsius', null, 40, 12, 60, 60)).toEqual([10, 100]);
    expect(computeAxis('celsiusDifference', null, 23, -3, 23, 20)).toEqual([-10, 50]);
  });

  it('axis without limit ends at round number', () => {
    expect(computeAxis('bytesPerSecond', null, 0, 3e6, 0, 0)).toEqual([0, 5e6]);
    expect(computeAxis('bytesPerSecond', null, NaN, NaN, NaN, NaN)).toEqual([0, 1e6]);
    expect(computeAxis('percent', null, 0, 50, 130, 0), 'a share').toEqual([0, 100]);
  });
});
