import { describe, expect, it } from 'vitest';

import { UNITS } from '../model/unit';
import { wholeAxis } from './axis';
import type { ChartLine, TimeWindow } from './content';

const TIMES = Float64Array.of(1000, 2000, 3000, 4000);
const WINDOW: TimeWindow = {
  times_ms: TIMES,
  revision: 0,
  from_ms: 1500,
  to_ms: 4000,
  gap_ms: 1500,
};

function lines(...values: number[]): ChartLine[] {
  return [{ values: Float64Array.from(values), color: 'red' }];
}

function axis(
  unit: keyof typeof UNITS,
  limit: number | null,
  ...values: number[]
): readonly number[] {
  return wholeAxis(UNITS[unit], limit, lines(...values), WINDOW);
}

describe('value axis', () => {
  it('axis ends slightly above its limit', () => {
    expect(axis('watts', 700, 100, 650, 700, 741)).toEqual([0, 742]);
    expect(axis('celsius', 87, 40, 60, 86, 99)).toEqual([20, 100]);
    expect(axis('bytes', 140 * 1024 ** 3, 0, 0, 0, 0)).toEqual([0, 140 * 1024 ** 3]);
  });

  it('axis shows all values and is stable', () => {
    expect(axis('watts', 700, 100, 650, 751, 700)).toEqual([0, 800]);
    expect(axis('watts', 700, 100, 650, 798, NaN)).toEqual([0, 800]);
    expect(axis('watts', 700, 900, 650, 700, 700), 'what has left the window').toEqual([0, 742]);
    expect(axis('celsius', 87, 40, 60, 103, 99)).toEqual([20, 110]);
    expect(axis('celsius', null, 40, 60, 103, 99)).toEqual([20, 110]);
    expect(axis('celsius', null, 40, 12, 60, 60)).toEqual([10, 100]);
    expect(axis('celsiusDifference', null, 23, -3, 23, 20)).toEqual([-10, 50]);
  });

  it('axis without limit ends at round number', () => {
    expect(axis('bytesPerSecond', null, 0, 3e6, 0, 0)).toEqual([0, 5e6]);
    expect(axis('bytesPerSecond', null, NaN, NaN, NaN, NaN)).toEqual([0, 1e6]);
    expect(axis('percent', null, 0, 50, 130, 0), 'a share').toEqual([0, 100]);
  });
});
