import { expect, it } from 'vitest';

import {
  makeGpu,
  makeInventory,
  NOW,
  makeSample,
  makeThrottledCondition,
  makeUnifiedGpu,
} from '../testing/frames';
import { formatWatts } from '../lib/format';
import { Timeline } from '../lib/timeline';
import type { GpuSample } from '../wire';
import { gpusOf, seriesKey } from './gpu';
import { valueOf } from './reading';
import { summaryOf } from './summary';

function summarize(...gpus: GpuSample[]): string[] {
  const now = { at_ms: NOW, isPast: false, timeline: new Timeline(1), gap_ms: 2500 };
  return summaryOf(gpusOf(makeInventory(gpus.length), makeSample(NOW, gpus)), now);
}

it('busy GPUs are counted first', () => {
  expect(summarize(makeGpu(0), makeGpu(1))[0]).toBe('2 of 2 H200 busy');
});

it('suspended and unresponsive GPUs are counted separately', () => {
  const asleep = makeGpu(0, { health: { state: 'asleep', since_ms: NOW } });
  const hung = makeGpu(1, { health: { state: 'hung', since_ms: NOW } });
  expect(summarize(asleep, hung, makeGpu(2)).slice(0, 2)).toEqual(['1 not responding', '1 asleep']);
});

it('dedicated memory excludes unified memory', () => {
  const memory = (...gpus: GpuSample[]): string | undefined =>
    summarize(...gpus)
      .find((part) => part.includes('/'))
      ?.replaceAll('\u00a0', ' ');
  expect(memory(makeUnifiedGpu(0, 41))).toBe('41.0 / 120 GiB unified');
  expect(memory(makeUnifiedGpu(0, 41), makeUnifiedGpu(1, 2))).toBe('43.0 / 120 GiB unified');
  expect(memory(makeGpu(0), makeUnifiedGpu(1, 2))).toBe('78.0 / 140 GiB');
});

it('past summary uses only time series', () => {
  const gpus = gpusOf(
    makeInventory(2),
    makeSample(NOW, [makeGpu(0, { conditions: [makeThrottledCondition('critical')] }), makeGpu(1)]),
  );
  const timeline = new Timeline(10);
  const moment = (percent: number, watts: number): Map<string, number> =>
    new Map(
      gpus.flatMap((one) => [
        [seriesKey(one, 'utilization.gpu_percent'), percent],
        [seriesKey(one, 'power.draw_watts'), watts],
      ]),
    );
  timeline.push(NOW - 2000, moment(0, 70), 2500);
  timeline.push(NOW - 1000, moment(90, 600), 2500);
  const at = (at_ms: number): string[] =>
    summaryOf(gpus, { at_ms, isPast: true, timeline, gap_ms: 2500 });
  expect(at(NOW - 1900)).toEqual(['0 of 2 H200 busy', formatWatts(140)]);
  expect(at(NOW - 900)).toEqual(['2 of 2 H200 busy', formatWatts(1200)]);
  expect(at(NOW - 60_000)).toEqual([]);
});

it('GPU counts as busy for ten seconds', () => {
  const timeline = new Timeline(100);
  const shown = new Set<string | undefined>();
  for (let second = 0; second < 60; second += 1) {
    const at_ms = NOW + second * 1000;
    const now = makeGpu(0, {
      utilization: { ...makeGpu(0).utilization, gpu_percent: second % 4 === 0 ? 90 : 0 },
    });
    const gpus = gpusOf(makeInventory(2), makeSample(at_ms, [now, makeGpu(1)]));
    timeline.push(
      at_ms,
      new Map([[seriesKey(now, 'utilization.gpu_percent'), valueOf(now.utilization.gpu_percent)]]),
      2500,
    );
    shown.add(summaryOf(gpus, { at_ms, isPast: false, timeline, gap_ms: 2500 })[0]);
  }
  expect([...shown]).toEqual(['2 of 2 H200 busy']);
});
