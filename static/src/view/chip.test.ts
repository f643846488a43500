// @vitest-environment jsdom
import { expect, it, vi } from 'vitest';

import { GIB, gpu, NOW, process, sample } from '../testing/frames';
import { Chip } from './chip';

const notebook = { kernel_id: 'k', kernel_pid: 10, path: 'train.ipynb' };
const own = process(10, {
  owner: { parents: [], notebook },
  memory_bytes: 61 * GIB,
  sm_percent: 93,
});

it('says what the notebook holds, and on which GPUs', () => {
  const chip = new Chip(() => undefined);
  const both = [gpu(0, { processes: [own] }), gpu(1, { processes: [own, process(4)] })];
  chip.update(sample(NOW, both), 'k');
  expect(chip.element.textContent.replaceAll('\u00a0', ' ')).toBe('GPU 122 GiB 186 %');
  expect(chip.element.title.replaceAll('\u00a0', ' ')).toContain('holds 122 GiB of GPU 0, 1');
});

it('is not there for a notebook without a GPU, nor before anything is known', () => {
  const chip = new Chip(() => undefined);
  expect(chip.element.hidden).toBe(true);
  chip.update(sample(NOW, [gpu(0, { processes: [own] })]), 'k');
  expect(chip.element.hidden).toBe(false);
  for (const [moment, kernel] of [
    [sample(NOW, [gpu(0, { processes: [own] })]), 'another'],
    [sample(NOW, [gpu(0, { processes: [own] })]), null],
    [null, 'k'],
  ] as const) {
    chip.update(moment, kernel);
    expect(chip.element.hidden).toBe(true);
  }
});

it('leads somewhere', () => {
  const click = vi.fn();
  new Chip(click).element.click();
  expect(click).toHaveBeenCalledOnce();
});
