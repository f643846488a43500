/**
 * Tests of the layout of menus, names and states: at common widths, on touch screens, and with
 * right-to-left text.
 */

import type { Browser, BrowserContextOptions, Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { generateFleet } from '../../../static/src/testing/fleet';
import { newPage } from './browser';
import { Charts } from './charts';
import { FakeFleet } from './fake-fleet';
import { it as base } from './fixtures';
import { GpumonServer } from './gpumon';
import { View } from './view';

const it = base
  .extend('two', { scope: 'file' }, async ({}, { onCleanup }) => {
    const server = await GpumonServer.start({ GPUMON_SOURCE: 'sim:2' });
    onCleanup(() => server.stop());
    return server;
  })
  .extend('eight', { scope: 'file' }, async ({}, { onCleanup }) => {
    const server = await GpumonServer.start({ GPUMON_SOURCE: 'sim:8' });
    onCleanup(() => server.stop());
    return server;
  });

/** Opens a URL at this width, and returns the result of `measure`. */
async function measureAt<T>(
  browser: Browser,
  url: string,
  width: number,
  measure: (page: Page) => Promise<T>,
  options: BrowserContextOptions = {},
): Promise<T> {
  const { page } = await newPage(browser, { viewport: { width, height: 900 }, ...options });
  try {
    await page.goto(url);
    if (url.includes('#fleet')) {
      await page.locator('[data-testid=gpumon-fleet][data-state=live]').waitFor();
    } else {
      await (url.includes('#charts')
        ? new Charts(page).waitUntilLive()
        : new View(page).waitUntilLive());
    }
    return await measure(page);
  } finally {
    await page.context().close();
  }
}

/** Opens a menu, and returns its name and the edges of its content. */
async function openMenu(menu: Locator): Promise<[name: string, left: number, right: number]> {
  const [summary, content] = [menu.locator('summary'), menu.locator('> div')];
  await summary.click();
  // The content has no position until gpumon has placed it, shortly after the menu is opened.
  const isPlaced = (): Promise<boolean> =>
    content.evaluate((element: HTMLElement) => element.style.getPropertyValue('--_left') !== '');
  await expect.poll(isPlaced).toBe(true);
  const { x, width } = (await content.boundingBox()) ?? { x: -1, width: 0 };
  return [(await summary.getAttribute('aria-label')) ?? '', x, x + width];
}

/** Returns the controls that are too small for touch input. */
function smallTargets(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const targets = document.querySelectorAll(
      '.gpumon :is(button, summary, select, input, a[href])',
    );
    return [...targets]
      .filter((target) => target.checkVisibility())
      .map((target) => ({ target, box: target.getBoundingClientRect() }))
      .filter(({ box: { width, height } }) => width < 24 || height < 24)
      .map(
        ({ target, box: { width, height } }) =>
          `${target.className} ${target.textContent}: ${width} x ${height}`,
      );
  });
}

const TOUCH = { hasTouch: true, isMobile: true };

describe('page layout', () => {
  it.for([560, 690, 1280, 1366, 1440, 1920])(
    'page of %i px shows complete menus',
    async (width, { browser, eight }) => {
      const opened = await measureAt(browser, `${eight.url}#charts`, width, async (page) => {
        const seen: [string, number, number][] = [];
        for (const menu of await page.locator('.gpumon-controls .gpumon-menu:visible').all()) {
          seen.push(await openMenu(menu));
          await page.keyboard.press('Escape');
        }
        return seen;
      });
      expect(opened.map(([name]) => name)).toEqual([
        'GPUs: 8 GPUs',
        'Time range: 2\u00a0min',
        'Compare',
        'Add mark',
        'Charts',
        'Shortcuts',
      ]);
      expect(opened.filter(([, left, right]) => left < 0 || right > width)).toEqual([]);
    },
  );

  it.for([560, 690, 1280, 1536])(
    'page of %i px shows pause in header',
    async (width, { browser, two }) => {
      const said = await measureAt(browser, `${two.url}#charts`, width, async (page) => {
        await page.keyboard.press('Space');
        const status = page.getByTestId('gpumon-status');
        await page.getByTestId('gpumon-resume').waitFor();
        const text = page.locator('.gpumon-status > :is(.gpumon-status-text, button):visible');
        const { x, width } = (await status.boundingBox()) ?? { x: -1, width: 0 };
        const isCut = await status.evaluate((element) => element.scrollWidth > element.clientWidth);
        return {
          text: (await text.allInnerTexts()).join(' '),
          right: x + width,
          isCut,
        };
      });
      expect(said.text).toMatch(/^Paused \d\d:\d\d:\d\d – \d\d:\d\d:\d\d Resume$/);
      expect([said.isCut, said.right <= width]).toEqual([false, true]);
    },
  );

  it.for([560, 600, 690, 800])(
    'page of %i px shows names and states',
    async (width, { browser, eight }) => {
      const { names, states } = await measureAt(browser, eight.url, width, (page) =>
        page.evaluate(() => {
          const all = (selector: string): HTMLElement[] => [
            ...document.querySelectorAll<HTMLElement>(selector),
          ];
          const shown = (element: HTMLElement): boolean => element.checkVisibility();
          return {
            names: all('td.gpumon-col-process')
              .filter(shown)
              .map((cell) => cell.clientWidth),
            // For each row, the right edge of its state and the right edge of the row.
            states: all('.gpumon-gpu[data-row]').map((row) => [
              row.querySelector('.gpumon-gpu-state')?.getBoundingClientRect().right ?? 0,
              row.getBoundingClientRect().right,
            ]),
          };
        }),
      );
      expect(names.length).toBeGreaterThan(5);
      expect(Math.min(...names)).toBeGreaterThan(160);
      expect(states).toHaveLength(8);
      expect(states.filter(([state = 0, row = 0]) => state > row)).toEqual([]);
    },
  );

  it.for(['', '#charts'])('touch targets have 24 px at "%s"', async (address, { browser, two }) => {
    expect(await measureAt(browser, two.url + address, 600, smallTargets, TOUCH)).toEqual([]);
  });

  it.for(['gpus', 'nodes', 'users', 'free'])(
    'touch targets have 24 px in fleet view %s',
    async (view, { browser, onTestFinished }) => {
      const server = await FakeFleet.start(
        generateFleet({ nodes: 40, gpus: 8, at_ms: Date.now() }),
      );
      onTestFinished(() => server.stop());
      const measure = async (page: Page): Promise<string[]> => {
        await page.locator('.gpumon-fleet-view table:visible').first().waitFor();
        return smallTargets(page);
      };
      expect(
        await measureAt(browser, `${server.url}#fleet?view=${view}`, 600, measure, TOUCH),
      ).toEqual([]);
    },
  );

  it.for(['', '#charts'])(
    'right-to-left units follow their numbers at "%s"',
    async (address, { browser, two }) => {
      const measure = (page: Page): Promise<{ count: number; wrong: string[] }> =>
        page.evaluate(async () => {
          document.documentElement.dir = 'rtl';
          await new Promise((resolve) => setTimeout(resolve, 1500));
          const x = (node: Node, at: number): number => {
            const range = document.createRange();
            range.setStart(node, at);
            range.setEnd(node, at + 1);
            return range.getBoundingClientRect().x;
          };
          const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
          const found: { text: string; isWrong: boolean }[] = [];
          for (let node = walker.nextNode(); node !== null; node = walker.nextNode()) {
            const text = node.textContent ?? '';
            const isVisible = node.parentElement?.checkVisibility() === true;
            for (const unit of text.matchAll(/\d\u00a0?(%|°C|W|GiB|s|min)/g)) {
              const end = unit.index + unit[0].length - 1;
              found.push({ text, isWrong: isVisible && x(node, unit.index) > x(node, end) });
            }
          }
          return {
            count: found.length,
            wrong: found.filter(({ isWrong }) => isWrong).map(({ text }) => text),
          };
        });
      const url = two.url + address;
      // If a unit is not isolated from the Arabic text around it, the browser draws the unit in the
      // wrong position.
      const { count, wrong } = await measureAt(browser, url, 1000, measure, { locale: 'ar' });
      expect(count).toBeGreaterThan(10);
      expect(wrong).toEqual([]);
    },
  );
});

describe('JupyterLab layout', () => {
  it.for([1280, 1366, 1440, 1536])(
    'JupyterLab of %i px shows complete menus',
    async (width, { page, simulated, lab, view, charts }) => {
      await page.setViewportSize({ width, height: 900 });
      await lab.open(`${simulated.pageUrl('lab')}&reset`);
      await lab.showPanel();
      await view.waitUntilLive();
      await lab.runCommand('GPU Charts');
      await charts.waitUntilLive();
      expect(
        await page.locator('#gpumon-panel, .gpumon-dashboard').getByRole('banner').count(),
      ).toBe(0);
      const { x: left = 0, width: room = 0 } = (await charts.root.boundingBox()) ?? {};
      for (const menu of await charts.root.locator('.gpumon-controls .gpumon-menu:visible').all()) {
        const [name, from, to] = await openMenu(menu);
        expect([from >= left, to <= left + room], name).toEqual([true, true]);
        await page.keyboard.press('Escape');
      }
    },
  );
});
