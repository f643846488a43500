import { expect, it } from 'vitest';

import { GIB, gpu, inventory, NOW, sample, makeUnifiedGpu } from '../testing/frames';
import type { Condition, GpuSample } from '../wire';
import { gpusOf } from './gpu';
import { gpuAlerts } from './gpu-alerts';

const FILLING: Condition = {
  condition: 'memory_filling',
  since_ms: NOW,
  severity: 'critical',
  text: '',
  left_ms: 29_000,
  bytes_per_second: GIB,
  growing: [],
};

it('forecast of unified memory has its own advice', () => {
  const titleOf = (now: GpuSample): string[] =>
    gpusOf(inventory(1), sample(NOW, [now])).flatMap((one) =>
      gpuAlerts(one, [], { memoryHorizon_ms: 60_000, firing: [] }, NOW).map(({ title }) => title),
    );
  const advice = /close other programs/;
  expect(titleOf(makeUnifiedGpu(0, 90, { conditions: [FILLING] }))[0]).toMatch(advice);
  expect(titleOf(gpu(0, { conditions: [FILLING] }))[0]).not.toMatch(advice);
});
