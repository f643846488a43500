import { expect, it } from 'vitest';

import { makeGpu, makeInventory, NOW, makeSample } from '../testing/frames';
import type { GpuSample } from '../wire';
import { gpusOf, type GpuState } from './gpu';
import {
  formatOrder,
  GpuSorter,
  orderAfterClick,
  parseOrder,
  type Order,
  type SortKey,
} from './gpu-list';

/** Returns GPUs with these temperatures. `null` stands for a GPU that cannot be read. */
function makeGpusWithTemperatures(...celsius: (number | null)[]): GpuState[] {
  const samples = celsius.map((value, index): GpuSample => {
    const { temperature } = makeGpu(index);
    const reading = value ?? ({ absent: 'no_answer' } as const);
    return makeGpu(index, { temperature: { ...temperature, gpu_celsius: reading } });
  });
  return gpusOf(makeInventory(samples.length), makeSample(NOW, samples));
}

function sort(
  gpus: readonly GpuState[],
  by: SortKey,
  direction: Order['direction'] = 'descending',
): number[] {
  return new GpuSorter()
    .sort(gpus, { by, direction }, ({ index }) => (index === 1 ? 'critical' : 'none'), NOW)
    .map(({ index }) => index);
}

it('column sorts in both directions', () => {
  const gpus = makeGpusWithTemperatures(40, 60, 50);
  expect(sort(gpus, 'temp')).toEqual([1, 2, 0]);
  expect(sort(gpus, 'temp', 'ascending')).toEqual([0, 2, 1]);
  expect(sort(gpus, 'index')).toEqual([2, 1, 0]);
  expect(sort(gpus, 'state')).toEqual([1, 0, 2]);
});

it('GPUs without the value are last', () => {
  const gpus = makeGpusWithTemperatures(null, 60, 50);
  expect(sort(gpus, 'temp')).toEqual([1, 2, 0]);
  expect(sort(gpus, 'temp', 'ascending')).toEqual([2, 1, 0]);
});

it('GPUs are re-sorted by value every five seconds', () => {
  const sorter = new GpuSorter();
  const order = { by: 'temp', direction: 'descending' } as const;
  const start_ms = Math.ceil(NOW / 5000) * 5000;
  const sorted = (gpus: readonly GpuState[], at_ms: number): number[] =>
    sorter.sort(gpus, order, () => 'none', at_ms).map(({ index }) => index);
  expect(sorted(makeGpusWithTemperatures(40, 60), start_ms)).toEqual([1, 0]);
  expect(sorted(makeGpusWithTemperatures(70, 60), start_ms + 4000)).toEqual([1, 0]);
  expect(sorted(makeGpusWithTemperatures(70, 60), start_ms + 5000)).toEqual([0, 1]);
});

it('click changes the sort direction', () => {
  const first = orderAfterClick(null, 'mem');
  const second = orderAfterClick(first, 'mem');
  expect([first?.direction, second?.direction]).toEqual(['descending', 'ascending']);
  expect(orderAfterClick(second, 'mem')).toBeNull();
  expect(orderAfterClick(first, 'power')).toEqual({ by: 'power', direction: 'descending' });
});

it('sort order is stored as text', () => {
  const order: Order = { by: 'mem', direction: 'ascending' };
  expect(parseOrder(formatOrder(order))).toEqual(order);
  expect(parseOrder('worst')).toEqual({ by: 'state', direction: 'descending' });
  expect([parseOrder(null), parseOrder('other')]).toEqual([null, null]);
});
