import { expect, it } from 'vitest';

import { gpu, inventory, NOW, sample, throttled, makeUnifiedGpu } from '../testing/frames';
import { watts } from '../lib/format';
import { Timeline } from '../lib/timeline';
import type { GpuSample } from '../wire';
import { gpusOf, seriesKey } from './gpu';
import { valueOf } from './reading';
import { summaryOf } from './summary';

function summary(...gpus: GpuSample[]): string[] {
  const now = { at_ms: NOW, isPast: false, timeline: new Timeline(1), gap_ms: 2500 };
  return summaryOf(gpusOf(inventory(gpus.length), sample(NOW, gpus)), now);
}

it('GPUs are counted by their worst alert', () => {
  const both = gpu(0, { conditions: [throttled('critical'), throttled('warning')] });
  const warned = gpu(1, { conditions: [throttled('warning')] });
  expect(summary(both, warned, gpu(2, { conditions: [throttled('notice')] }))[0]).toBe(
    '1 critical',
  );
  expect(summary(warned, gpu(0))[0]).toBe('1 warning');
  expect(summary(gpu(0), gpu(1))[0]).toBe('2 of 2 H200 busy');
});

it('suspended and unresponsive GPUs are counted separately', () => {
  const asleep = gpu(0, { health: { state: 'asleep', since_ms: NOW } });
  const hung = gpu(1, { health: { state: 'hung', since_ms: NOW } });
  expect(summary(asleep, hung, gpu(2)).slice(0, 2)).toEqual(['1 not responding', '1 asleep']);
});

it('dedicated memory excludes unified memory', () => {
  const memory = (...gpus: GpuSample[]): string | undefined =>
    summary(...gpus)
      .find((part) => part.includes('/'))
      ?.replaceAll('\u00a0', ' ');
  expect(memory(makeUnifiedGpu(0, 41))).toBe('41.0 / 120 GiB unified');
  expect(memory(makeUnifiedGpu(0, 41), makeUnifiedGpu(1, 2))).toBe('43.0 / 120 GiB unified');
  expect(memory(gpu(0), makeUnifiedGpu(1, 2))).toBe('78.0 / 140 GiB');
});

it('past summary uses only time series', () => {
  const gpus = gpusOf(
    inventory(2),
    sample(NOW, [gpu(0, { conditions: [throttled('critical')] }), gpu(1)]),
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
  expect(at(NOW - 1900)).toEqual(['0 of 2 H200 busy', watts(140)]);
  expect(at(NOW - 900)).toEqual(['2 of 2 H200 busy', watts(1200)]);
  expect(at(NOW - 60_000)).toEqual([]);
});

it('GPU stays busy for ten seconds', () => {
  const timeline = new Timeline(100);
  const shown = new Set<string | undefined>();
  for (let second = 0; second < 60; second += 1) {
    const at_ms = NOW + second * 1000;
    const now = gpu(0, {
      utilization: { ...gpu(0).utilization, gpu_percent: second % 4 === 0 ? 90 : 0 },
    });
    const gpus = gpusOf(inventory(2), sample(at_ms, [now, gpu(1)]));
    timeline.push(
      at_ms,
      new Map([[seriesKey(now, 'utilization.gpu_percent'), valueOf(now.utilization.gpu_percent)]]),
      2500,
    );
    shown.add(summaryOf(gpus, { at_ms, isPast: false, timeline, gap_ms: 2500 })[0]);
  }
  expect([...shown]).toEqual(['2 of 2 H200 busy']);
});
