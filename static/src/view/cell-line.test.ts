// @vitest-environment jsdom
import { beforeEach, expect, it } from 'vitest';

import { setLocale } from '../lib/format';
import { setTranslator, trans } from '../lib/translation';
import { COST, STORED_COST } from '../testing/full-hello';
import { GIB } from '../testing/frames';
import { readStoredCost } from '../model/cell-cost';
import { pseudoTranslator, textsOf, findUntranslated } from '../testing/pseudo-locale';
import { CellLine } from './notebook';

const stored = { ...STORED_COST, duration_s: 13.1 };
let line: CellLine;

beforeEach(() => {
  line = new CellLine();
});

/** Returns the visible text of the line. */
function visibleText(): string {
  const copy = line.element.cloneNode(true) as HTMLElement;
  copy.querySelectorAll('[hidden]').forEach((element) => element.remove());
  const texts = [...copy.querySelectorAll('[data-cost], .gpumon-cell-was, .gpumon-cell-stored')];
  return texts.map((element) => element.textContent.replaceAll('\u00a0', ' ')).join(', ');
}

it('stored cost is marked until a new run', () => {
  line.updateStored(stored, true);
  expect(visibleText()).toBe('13.1 s, GPU 5 ms, peak 1.00 GiB, 1.00 J shared, stored');
  expect(line.element.getAttribute('data-stored')).toBe('last');
  expect(line.element.getAttribute('aria-label')).toBe('GPU use of this cell');
  line.updateStored(stored, false);
  expect(visibleText()).toBe('13.1 s, GPU 5 ms, peak 1.00 GiB, 1.00 J shared, stored, earlier run');
  expect(line.element.getAttribute('data-stored')).toBe('earlier');
  expect(line.element.getAttribute('aria-label')).toBe('GPU use of an earlier run of this cell');
  line.update(COST, true, null);
  expect(visibleText()).toBe('5.00 s, GPU 5 ms, peak 1.00 GiB, 1.00 J shared, host-bound 62 %');
  expect([...line.element.attributes].map(({ name }) => name)).not.toContain('data-stored');
});

it('different cost of an earlier run is shown', () => {
  line.update(COST, false, { ...stored, energy_joules: 1.2 });
  expect(visibleText()).toBe(
    '5.00 s, was 13.1 s, GPU 5 ms, peak 1.00 GiB, 1.00 J shared, was 1.20 J, host-bound 62 %',
  );
  const was = line.element.querySelector('.gpumon-cell-was');
  expect(was?.getAttribute('title')).toBe('Earlier run on 2 × NVIDIA H200, stored in the notebook');
  line.update(COST, false, null);
  expect(visibleText()).not.toContain('was');
});

it('small difference from earlier run is not shown', () => {
  line.update(COST, false, {
    ...stored,
    duration_s: 5.05,
    peak_memory_bytes: 3 * GIB,
    memory_change_bytes: GIB,
  });
  expect(visibleText()).toBe(
    '5.00 s, GPU 5 ms, peak 1.00 GiB, was 3.00 GiB, 1.00 J shared, host-bound 62 %',
  );
});

it('markup in names is shown as text', () => {
  const hostile = readStoredCost({ ...stored, gpus: ['<img src=x onerror=alert(1)>'] });
  expect(hostile).not.toBeNull();
  if (hostile !== null) {
    line.updateStored(hostile, true);
    line.update(COST, false, hostile);
  }
  expect(line.element.querySelector('img')).toBeNull();
  expect(line.element.querySelector('.gpumon-cell-was')?.getAttribute('title')).toContain(
    '<img src=x',
  );
});

it('cell cost line is completely translated', () => {
  const before = trans;
  setTranslator(pseudoTranslator(trans));
  const texts: string[] = [];
  line.updateStored(stored, true);
  texts.push(...textsOf(line.element));
  line.updateStored(stored, false);
  texts.push(...textsOf(line.element));
  line.update(COST, true, { ...stored, energy_joules: 1.2 });
  texts.push(...textsOf(line.element));
  expect(texts.length).toBeGreaterThan(20);
  expect(findUntranslated(texts, ['NVIDIA'])).toEqual([]);
  setTranslator(before);
});

it('values are isolated in right-to-left languages', () => {
  setLocale('ar');
  line.update(COST, false, null);
  const parts = [...line.element.querySelectorAll('[data-cost]')];
  const isolated = /^\P{L}*[\p{L}-]*\s?\u2066[^\u2069]*\d\u00a0[\p{L}%]+[^\u2069]*\u2069/u;
  expect(parts.filter(({ textContent }) => !isolated.test(textContent))).toEqual([]);
  setLocale('en-US');
});
