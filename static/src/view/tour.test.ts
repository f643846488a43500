// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import '../testing/dialog';
import { setTranslator, trans } from '../lib/translation';
import { pseudoTranslator, textsOf, untranslated } from '../testing/pseudo-locale';
import { Tour, tourSteps, type TourTargets } from './tour';
import { TourEntry } from './tour-entry';

const root = document.createElement('div');

/** Things to point at, of which the charts cannot be opened here. */
function targets(): TourTargets {
  const [gpus, holders, benchmarks] = [1, 2, 3].map(() => document.createElement('section'));
  return { gpus: gpus ?? null, holders: holders ?? null, charts: null, benchmarks: benchmarks ?? null };
}

function shown(): [string | undefined, string | undefined] {
  const text = (selector: string): string | undefined => root.querySelector(selector)?.textContent;
  return [text('h2'), text('.gpumon-tour-next')];
}

function press(key: string): void {
  document.activeElement?.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
}

async function isShown(entry: TourEntry): Promise<boolean> {
  entry.offer();
  await new Promise((resolve) => setTimeout(resolve, 50));
  return root.querySelector('dialog') !== null;
}

beforeEach(() => {
  document.body.replaceChildren(root);
  root.replaceChildren();
  localStorage.clear();
});
afterEach(() => vi.unstubAllGlobals());

it('goes by arrow keys and by its buttons through what is there, and ends behind the last', () => {
  const onEnd = vi.fn();
  new Tour(tourSteps(targets()), onEnd).open(root);
  expect(shown()).toEqual(['Your GPUs', 'Next']);
  expect(document.activeElement).toBe(root.querySelector('.gpumon-tour-next'));
  press('ArrowLeft');
  press('ArrowRight');
  expect(shown()[0]).toBe('Who holds memory');
  root.querySelector<HTMLElement>('.gpumon-tour-next')?.click();
  expect(shown()).toEqual(['Benchmarks', 'Done']);
  expect(root.textContent).toContain('3 of 3');
  press('ArrowLeft');
  expect(shown()[0]).toBe('Who holds memory');
  press('ArrowRight');
  expect(onEnd).not.toHaveBeenCalled();
  root.querySelector<HTMLElement>('.gpumon-tour-next')?.click();
  expect(onEnd).toHaveBeenCalledOnce();
  expect(root.querySelector('dialog')).toBeNull();
});

it('is offered until it has been closed once, and there again when it is asked for', async () => {
  expect(await isShown(new TourEntry(root, targets))).toBe(true);
  root.querySelector('dialog')?.close();
  const entry = new TourEntry(root, targets);
  expect(await isShown(entry)).toBe(false);
  await entry.show();
  await entry.show();
  expect(root.querySelectorAll('dialog')).toHaveLength(1);
});

it('does not come in the way of a program that steers the browser', async () => {
  vi.stubGlobal('navigator', { webdriver: true });
  const entry = new TourEntry(root, targets);
  expect(await isShown(entry)).toBe(false);
  await entry.show();
  expect(root.querySelector('dialog')).not.toBeNull();
});

it('has no English word in another language', () => {
  const before = trans;
  setTranslator(pseudoTranslator(trans));
  const charts = document.createElement('button');
  const steps = tourSteps({ ...targets(), charts });
  new Tour(steps, vi.fn()).open(root);
  expect(steps).toHaveLength(4);
  for (let left = steps.length; left > 0; left -= 1) {
    expect(untranslated(textsOf(root), [])).toEqual([]);
    press('ArrowRight');
  }
  setTranslator(before);
});
