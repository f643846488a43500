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
  return {
    gpus: gpus ?? null,
    holders: holders ?? null,
    charts: null,
    benchmarks: benchmarks ?? null,
  };
}

function shown(): [string | undefined, string | undefined] {
  const text = (selector: string): string | undefined => root.querySelector(selector)?.textContent;
  return [text('h2'), text('.gpumon-primary')];
}

function press(key: string): void {
  document.activeElement?.dispatchEvent(
    new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }),
  );
}

/** Whether it is, as soon as there is something to point at. */
async function isShown(entry: TourEntry): Promise<boolean> {
  entry.ready();
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
  expect(document.activeElement).toBe(root.querySelector('.gpumon-primary'));
  press('ArrowLeft');
  press('ArrowRight');
  expect(shown()[0]).toBe('Who holds memory');
  root.querySelector<HTMLElement>('.gpumon-primary')?.click();
  expect(shown()).toEqual(['Benchmarks', 'Done']);
  expect(root.textContent).toContain('3 of 3');
  press('ArrowLeft');
  expect(shown()[0]).toBe('Who holds memory');
  press('ArrowRight');
  expect(onEnd).not.toHaveBeenCalled();
  root.querySelector<HTMLElement>('.gpumon-primary')?.click();
  expect(onEnd).toHaveBeenCalledOnce();
  expect(root.querySelector('dialog')).toBeNull();
});

it('is closed by a press beside it, and not by one that only ends there', () => {
  new Tour(tourSteps(targets()), vi.fn()).open(root);
  const dialog = root.querySelector('dialog');
  const press = (begin?: Element | null): void => {
    begin?.dispatchEvent(new Event('pointerdown', { bubbles: true }));
    dialog?.dispatchEvent(new Event('click', { bubbles: true }));
  };
  press(dialog?.querySelector('p'));
  expect(dialog?.open).toBe(true);
  press(dialog);
  expect(dialog?.open).toBe(false);
});

it('is offered until it has been closed once, and there again when it is asked for', async () => {
  const asked = new TourEntry(root, targets, false);
  expect(await isShown(asked)).toBe(false);
  expect(await isShown(new TourEntry(root, targets, true))).toBe(true);
  root.querySelector('dialog')?.close();
  expect(await isShown(new TourEntry(root, targets, true))).toBe(false);
  for (const time of ['once', 'again']) {
    asked.request();
    expect(await isShown(asked), time).toBe(true);
  }
  expect(root.querySelectorAll('dialog')).toHaveLength(1);
});

it('does not come in the way of a program that steers the browser', async () => {
  vi.stubGlobal('navigator', { webdriver: true });
  const entry = new TourEntry(root, targets, true);
  expect(await isShown(entry)).toBe(false);
  entry.request();
  expect(await isShown(entry)).toBe(true);
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
