/**
 * Tests that the Tab key reaches all controls: on the page with cards, on the page with rows, and
 * on the charts with each menu open.
 */

import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { it } from './fixtures';
import { GpumonServer } from './gpumon';

/** The maximum number of key presses, which exceeds twice the number of controls. */
const MAX_PRESSES = 400;

interface Walk {
  /** The elements that have had the focus. */
  reached: Set<EventTarget | null>;
}

/**
 * Opens all details, and presses Tab until all controls have had the focus. Returns the controls
 * that were not reached.
 */
async function findUnreachable(page: Page): Promise<string[]> {
  await page.evaluate(() => {
    document.querySelectorAll('details').forEach((details) => {
      details.open = true;
    });
    const reached = new Set<EventTarget | null>();
    document.addEventListener('focusin', ({ target }) => reached.add(target));
    Object.assign(window, { gpumonWalk: { reached } });
  });
  const listUnreached = (): Promise<string[]> =>
    page.evaluate(() => {
      const { reached } = (window as unknown as { gpumonWalk: Walk }).gpumonWalk;
      const all = [
        ...document.querySelectorAll<HTMLElement>('button, summary, input, select, a[href]'),
      ];
      // The Tab key skips the button of a row. The button counts as reached if the row gets the
      // focus, because Enter on the row has the same effect.
      const isReached = (element: HTMLElement): boolean =>
        reached.has(element) ||
        (element.tabIndex < 0 && reached.has(element.closest('[tabindex="0"]')));
      return all
        .filter(
          (element) =>
            element.checkVisibility() && !element.matches(':disabled') && !isReached(element),
        )
        .map(
          ({ localName, className, textContent }) => `${localName}.${className}: ${textContent}`,
        );
    });
  let unreached = await listUnreached();
  expect(unreached.length).toBeGreaterThan(5);
  for (let presses = 0; presses < MAX_PRESSES && unreached.length > 0; presses += 1) {
    await page.keyboard.press('Tab');
    unreached = await listUnreached();
  }
  return unreached;
}

describe('keyboard navigation', () => {
  for (const [name, gpus, hash] of [
    ['cards', 2, ''],
    ['rows', 8, ''],
    ['charts', 2, '#charts'],
  ] as const) {
    it(`all controls are reachable: ${name}`, async ({ page, view, charts }) => {
      const server = await GpumonServer.start({ GPUMON_SOURCE: `sim:${gpus}` });
      try {
        await page.goto(server.url + hash);
        await (hash === '' ? view : charts).waitUntilLive();
        expect(await findUnreachable(page)).toEqual([]);
      } finally {
        await server.stop();
      }
    });
  }
});
