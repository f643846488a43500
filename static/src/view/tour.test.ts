// @vitest-environment jsdom
import { afterEach, beforeEach, expect, it, vi } from 'vitest';

import '../testing/dialog';
import { setTranslator, trans } from '../lib/translation';
import { pseudoTranslator, textsOf, findUntranslated } from '../testing/pseudo-locale';
import { openTour, type TourTargets } from './tour';
import { TourEntry } from './dialog-entries';

const root = document.createElement('div');

/** Returns the targets of the tour. There is no target for the charts. */
function makeTargets(): TourTargets {
  const [gpus, holders, benchmarks] = [1, 2, 3].map(() => document.createElement('section'));
  return {
    gpus: gpus ?? null,
    holders: holders ?? null,
    charts: null,
    benchmarks: benchmarks ?? null,
  };
}

function shownStep(): [string | undefined, string | undefined] {
  const text = (selector: string): string | undefined => root.querySelector(selector)?.textContent;
  return [text('h2'), text('.gpumon-primary')];
}

async function press(key: string): Promise<void> {
  document.activeElement?.dispatchEvent(
    new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }),
  );
  await Promise.resolve();
}

async function pressNext(): Promise<void> {
  root.querySelector<HTMLElement>('.gpumon-primary')?.click();
  await Promise.resolve();
}

/** Calls `showIfRequested`, and returns whether the tour is shown afterwards. */
async function showsTour(entry: TourEntry): Promise<boolean> {
  entry.showIfRequested();
  await new Promise((resolve) => setTimeout(resolve, 50));
  return root.querySelector('dialog') !== null;
}

beforeEach(() => {
  document.body.replaceChildren(root);
  root.replaceChildren();
  localStorage.clear();
});
afterEach(() => vi.unstubAllGlobals());

it('arrow keys and buttons step through visible targets', async () => {
  const onEnd = vi.fn();
  openTour(root, makeTargets(), onEnd);
  expect(shownStep()).toEqual(['Your GPUs', 'Next']);
  expect(document.activeElement).toBe(root.querySelector('.gpumon-primary'));
  await press('ArrowLeft');
  await press('ArrowRight');
  expect(shownStep()[0]).toBe('Processes');
  await pressNext();
  expect(shownStep()).toEqual(['Benchmarks', 'Done']);
  expect(root.textContent).toContain('3 of 3');
  await press('ArrowLeft');
  expect(shownStep()[0]).toBe('Processes');
  await press('ArrowRight');
  expect(onEnd).not.toHaveBeenCalled();
  await pressNext();
  expect(onEnd).toHaveBeenCalledOnce();
  expect(root.querySelector('dialog')).toBeNull();
});

it('press that starts outside the tour closes it', () => {
  openTour(root, makeTargets(), vi.fn());
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

it('tour is offered until closed, then on request', async () => {
  const asked = new TourEntry(root, makeTargets, false);
  expect(await showsTour(asked)).toBe(false);
  expect(await showsTour(new TourEntry(root, makeTargets, true))).toBe(true);
  root.querySelector('dialog')?.close();
  expect(await showsTour(new TourEntry(root, makeTargets, true))).toBe(false);
  for (const time of ['once', 'again']) {
    asked.requestTour();
    expect(await showsTour(asked), time).toBe(true);
  }
  expect(root.querySelectorAll('dialog')).toHaveLength(1);
});

it('automated browser shows the tour only on request', async () => {
  vi.stubGlobal('navigator', { webdriver: true });
  const entry = new TourEntry(root, makeTargets, true);
  expect(await showsTour(entry)).toBe(false);
  entry.requestTour();
  expect(await showsTour(entry)).toBe(true);
});

it('tour is completely translated', async () => {
  const before = trans;
  setTranslator(pseudoTranslator(trans));
  openTour(root, { ...makeTargets(), charts: document.createElement('button') }, vi.fn());
  const titles = new Set<string | undefined>();
  for (let step = 0; step < 4; step += 1) {
    titles.add(shownStep()[0]);
    expect(findUntranslated(textsOf(root), [])).toEqual([]);
    await press('ArrowRight');
  }
  expect(titles.size).toBe(4);
  setTranslator(before);
});
