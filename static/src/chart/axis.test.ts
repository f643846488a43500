import { describe, expect, it } from 'vitest';

import { UNITS } from '../model/unit';
import {
  computeUnzoomedAxis,
  roundRange,
  roundUp,
  timeTicks,
  formatTimeTick,
  valueTicks,
} from './axis';
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
  return computeUnzoomedAxis(UNITS[unit], limit, createLines(...values), WINDOW);
}

describe('value axis', () => {
  it('axis ends slightly above its limit', () => {
    expect(computeAxis('watts', 700, 100, 650, 700, 741)).toEqual([0, 742]);
    expect(computeAxis('celsius', 87, 40, 60, 86, 99)).toEqual([20, 100]);
    expect(computeAxis('bytes', 140 * 1024 ** 3, 0, 0, 0, 0)).toEqual([0, 140 * 1024 ** 3]);
  });

  it('axis covers all values and stays stable', () => {
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

describe('axis ticks', () => {
  it('value ticks are round and limited in number', () => {
    expect(valueTicks(0, 100, 4)).toEqual([0, 50, 100]);
    expect(valueTicks(0, 742, 4)).toEqual([0, 200, 400, 600]);
    expect(valueTicks(20, 100, 4)).toEqual([20, 40, 60, 80, 100]);
    expect(valueTicks(0, 0.5, 3)).toHaveLength(3);
    expect(valueTicks(0, 0, 3)).toEqual([]);
  });

  it('ticks are round in the displayed unit', () => {
    const memorySize = 1024 ** 3;
    expect(valueTicks(0, 140 * memorySize, 4, memorySize)).toEqual([
      0,
      50 * memorySize,
      100 * memorySize,
    ]);
  });

  it('small changes of values keep the axis', () => {
    expect([0.3, 1, 1.1, 4.9, 7.2, 99].map((value) => roundUp(value))).toEqual([
      0.5, 1, 2, 5, 10, 100,
    ]);
    expect(roundUp(3 * 1024 ** 3, 1024 ** 3)).toBe(5 * 1024 ** 3);
  });

  it('axis range is rounded around its values', () => {
    expect(roundRange(52.3, 67.8)).toEqual([50, 70]);
    expect(roundRange(690, 690)).toEqual([690, 690.2]);
    expect(roundRange(0, 0)).toEqual([0, 0.0005]);
    const gib = 1024 ** 3;
    expect(roundRange(31.2 * gib, 33.4 * gib, gib).map((value) => value / gib)).toEqual([31, 34]);
  });

  it('time ticks are at round times', () => {
    const noon = new Date(2026, 10, 20, 12, 0, 7).getTime();
    const { step_ms, times_ms } = timeTicks(noon, noon + 120_000, 4);
    expect(step_ms).toBe(30_000);
    expect(times_ms.map((at) => new Date(at).getSeconds())).toEqual([30, 0, 30, 0]);
    const day = timeTicks(noon, noon + 26 * 3_600_000, 5);
    expect(day.times_ms.map((at) => new Date(at).getHours())).toEqual([18, 0, 6, 12]);
  });

  it('long spans have dates at midnights or Mondays', () => {
    const noon = new Date(2026, 10, 20, 12).getTime();
    const texts = (days: number, most: number): string[] => {
      const { step_ms, times_ms } = timeTicks(noon - days * 86_400_000, noon, most);
      return times_ms.map((at) => formatTimeTick(at, step_ms));
    };
    expect(texts(1, 5)).toEqual(['12:00', '18:00', 'Nov 20', '06:00', '12:00']);
    expect(texts(6, 6)).toEqual(['Nov 15', 'Nov 16', 'Nov 17', 'Nov 18', 'Nov 19', 'Nov 20']);
    expect(texts(30, 5)).toEqual(['Oct 26', 'Nov 2', 'Nov 9', 'Nov 16']);
    expect(formatTimeTick(noon + 7000, 1000)).toBe('12:00:07');
  });

  it('clock changes keep ticks at whole hours', () => {
    // In Europe, the clocks change on these days. Where clocks do not change, all days have 24
    // hours.
    for (const [month, day] of [
      [2, 29],
      [9, 25],
    ] as const) {
      const { times_ms } = timeTicks(
        new Date(2026, month, day - 1, 1).getTime(),
        new Date(2026, month, day + 2).getTime(),
        12,
      );
      expect(new Set(times_ms.map((at) => new Date(at).getHours() % 6))).toEqual(new Set([0]));
      expect(times_ms).toEqual([...new Set(times_ms)].sort((a, b) => a - b));
    }
  });
});
