// @vitest-environment jsdom
import { expect, it, vi } from 'vitest';

import { setTranslator, trans } from '../lib/translation';
import { GIB, makeGpu, NOW, makeProcess, makeSample } from '../testing/frames';
import { pseudoTranslator, textsOf, findUntranslated } from '../testing/pseudo-locale';
import { Chip } from './notebook';

const notebook = { kernel_id: 'k', kernel_pid: 10, path: 'train.ipynb' };
const own = makeProcess(10, {
  owner: { parents: [], notebook },
  memory_bytes: 61 * GIB,
  sm_percent: 93,
});

it('GPU indicator shows memory and utilization of notebook', () => {
  const chip = new Chip(() => undefined);
  const both = [makeGpu(0, { processes: [own] }), makeGpu(1, { processes: [own, makeProcess(4)] })];
  chip.update(makeSample(NOW, both), 'k');
  expect(chip.element.textContent.replaceAll('\u00a0', ' ')).toBe('GPU 122 GiB 186 %');
  expect(chip.element.title.replaceAll('\u00a0', ' ')).toContain('holds 122 GiB of GPU 0, 1');
});

it('GPU indicator is hidden without GPU or sample', () => {
  const chip = new Chip(() => undefined);
  expect(chip.element.hidden).toBe(true);
  chip.update(makeSample(NOW, [makeGpu(0, { processes: [own] })]), 'k');
  expect(chip.element.hidden).toBe(false);
  for (const [moment, kernel] of [
    [makeSample(NOW, [makeGpu(0, { processes: [own] })]), 'another'],
    [makeSample(NOW, [makeGpu(0, { processes: [own] })]), null],
    [null, 'k'],
  ] as const) {
    chip.update(moment, kernel);
    expect(chip.element.hidden).toBe(true);
  }
});

it('click on GPU indicator calls the listener', () => {
  const click = vi.fn();
  new Chip(click).element.click();
  expect(click).toHaveBeenCalledOnce();
});

it('notebook GPU indicator is completely translated', () => {
  const before = trans;
  setTranslator(pseudoTranslator(trans));
  const chip = new Chip(() => undefined);
  for (const changes of [{}, { memory_bytes: null }, { sm_percent: null }]) {
    const processes = [{ ...own, ...changes } as typeof own];
    chip.update(makeSample(NOW, [makeGpu(0, { processes })]), 'k');
    expect(textsOf(chip.element)).toHaveLength(2);
    expect(findUntranslated(textsOf(chip.element), [])).toEqual([]);
  }
  setTranslator(before);
});
