import { expect, it } from 'vitest';

import { gpu, inventory, NOW, sample, throttled } from '../testing/frames';
import type { GpuSample } from '../wire';
import { gpusOf } from './gpu';
import { summaryOf } from './summary';

function summary(...gpus: GpuSample[]): string[] {
  return summaryOf(gpusOf(inventory(gpus.length), sample(NOW, gpus)));
}

it('counts GPUs that have something grave, each by the worst it has', () => {
  const both = gpu(0, { conditions: [throttled('critical'), throttled('warning')] });
  const warned = gpu(1, { conditions: [throttled('warning')] });
  expect(summary(both, warned, gpu(2, { conditions: [throttled('notice')] }))[0]).toBe('1 critical, 1 with a warning');
  expect(summary(warned, gpu(0))[0]).toBe('1 with a warning');
  expect(summary(gpu(0), gpu(1))[0]).toBe('2 of 2 busy');
});

it('counts a GPU that sleeps apart from one that does not answer', () => {
  const asleep = gpu(0, { health: { state: 'asleep', since_ms: NOW } });
  const hung = gpu(1, { health: { state: 'hung', since_ms: NOW } });
  expect(summary(asleep, hung, gpu(2)).slice(0, 2)).toEqual(['1 not responding', '1 asleep']);
});
