import { describe, expect, it } from 'vitest';

import { Timeline } from '../../lib/timeline';
import { changeText, FIGURES, computeFigures, shiftSeries } from './comparison';

/**
 * Returns a timeline with one sample per second for two GPUs: utilization, memory, energy and
 * power.
 */
function recordSamples(...seconds: [gpu0: number[], gpu1: number[]][]): Timeline {
  const timeline = new Timeline(100);
  const metrics = FIGURES.map(({ metric }) => metric);
  seconds.forEach((gpus, second) => {
    const values = gpus.flatMap((row, index) =>
      metrics.map((metric, i) => [`GPU-${index} ${metric}`, row[i] ?? null] as const),
    );
    timeline.push(second * 1000, new Map(values), 2500);
  });
  return timeline;
}

const GIB = 1024 ** 3;
const BOTH_SERIES = 'GPU-0 ,GPU-1 ';

describe('figures of a span', () => {
  const timeline = recordSamples(
    [
      [0, GIB, 1000, 100],
      [50, 5 * GIB, 9000, 200],
    ],
    [
      [100, 4 * GIB, 1100, 300],
      [50, GIB, 9050, 200],
    ],
    [
      [80, 2 * GIB, 1300, 500],
      [50, GIB, 9100, 200],
    ],
  );

  it('figures combine all GPUs', () => {
    expect(computeFigures(timeline, 0, 2000, BOTH_SERIES)).toEqual([55, 6 * GIB, 400, 500]);
    expect(
      computeFigures(timeline, 1000, 2000, 'GPU-0 '),
      'of one GPU and a part of the time',
    ).toEqual([90, 4 * GIB, 200, 400]);
  });

  it('comparison figures without data are missing', () => {
    expect(computeFigures(timeline, 5000, 9000, BOTH_SERIES)).toEqual([null, null, null, null]);
    expect(computeFigures(timeline, 0, 2000, 'GPU-9 ')).toEqual([null, null, null, null]);
  });

  it('counter reset keeps the earlier growth', () => {
    const restarted = recordSamples(
      [[0, 0, 100, 0], []],
      [[0, 0, 160, 0], []],
      [[0, 0, 10, 0], []],
      [[0, 0, 30, 0], []],
    );
    expect(computeFigures(restarted, 0, 3000, 'GPU-0 ')[2]).toBe(80);
  });
});

it('comparison shows changes in points or percent', () => {
  const [utilization, memory] = FIGURES;
  if (utilization === undefined || memory === undefined) {
    throw new Error('there are no figures');
  }
  expect(changeText(utilization, 90, 60)).toBe('+30 points');
  expect(changeText(utilization, 60, 60.2)).toBe('±0 points');
  expect(changeText(memory, 30 * GIB, 40 * GIB)).toBe('−25\u00a0%');
  expect([changeText(memory, 1, 0), changeText(memory, null, 1)]).toEqual(['', '']);
});

it('times of compared earlier span are shifted', () => {
  const timeline = recordSamples([[10, 0, 0, 0], []], [[20, 0, 0, 0], []]);
  const moved = shiftSeries(timeline, 60_000);
  expect([...moved.times_ms]).toEqual([60_000, 61_000]);
  expect([...moved.values('GPU-0 utilization.gpu_percent')]).toEqual([10, 20]);
  expect(moved.revision).not.toBe(shiftSeries(timeline, 1000).revision);
});
