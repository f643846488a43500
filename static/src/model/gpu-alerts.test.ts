import { expect, it } from 'vitest';

import { GIB, makeGpu, makeInventory, NOW, makeSample, makeUnifiedGpu } from '../testing/frames';
import type { Condition, GpuSample } from '../wire';
import { gpusOf } from './gpu';
import { gpuAlerts } from './gpu-alerts';

const FILLING_CONDITION: Condition = {
  condition: 'memory_filling',
  since_ms: NOW,
  severity: 'critical',
  text: '',
  left_ms: 29_000,
  bytes_per_second: GIB,
  growing: [],
};

it('memory forecast has advice for unified memory', () => {
  const titleOf = (now: GpuSample): string[] =>
    gpusOf(makeInventory(1), makeSample(NOW, [now])).flatMap((one) =>
      gpuAlerts(one, [], { memoryHorizon_ms: 60_000, firing: [] }, NOW).map(({ title }) => title),
    );
  const advice = /close other programs/;
  expect(titleOf(makeUnifiedGpu(0, 90, { conditions: [FILLING_CONDITION] }))[0]).toMatch(advice);
  expect(titleOf(makeGpu(0, { conditions: [FILLING_CONDITION] }))[0]).not.toMatch(advice);
});
