/** Workloads that are started from the page and from the panel, with a script that does them. */

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { closePage, launchBrowser, newPage, type Conduct } from './browser';
import { contrastOf } from './contrast';
import { GpumonServer } from './gpumon';
import { JupyterServer } from './jupyter';
import { Lab } from './lab';
import { View } from './view';
import { Worker } from './worker';

const source = { GPUMON_SOURCE: 'sim:2' };
let browser: Browser;
let page: Page;
let conduct: Conduct;
let worker: Worker;

beforeAll(async () => {
  browser = await launchBrowser();
});
beforeEach(async () => {
  ({ page, conduct } = await newPage(browser));
  worker = new Worker();
});
afterEach(async ({ task }) => {
  await closePage(page, task);
});
afterAll(async () => {
  await browser.close();
});

const running = (): ReturnType<Page['locator']> => page.locator('.gpumon-run[data-status=running]');

/** Starts triad on the second GPU, by the keyboard. */
async function start(): Promise<void> {
  await page.getByTestId('gpumon-run').press('Enter');
  const what = page.getByLabel('What to run');
  await what.selectOption({ label: 'triad' });
  await page.getByLabel('Where to run it').selectOption({ label: 'GPU 1, H200' });
  await what.press('Tab');
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await running().waitFor();
}

describe('a run from the page', () => {
  let server: GpumonServer;
  beforeEach(async () => {
    server = await GpumonServer.start({ ...source, ...worker.env });
    await page.goto(server.url);
    await new View(page).live();
  });
  afterEach(async () => {
    await server.stop();
  });

  it('shows progress, live readings and its result, and what happened', async () => {
    await start();
    const run = running();
    await run.getByText('triad, 2 of 2: verifying').waitFor();
    await run.getByText('half of it').waitFor();
    await expect.poll(() => run.locator('progress').getAttribute('value')).toBe('0.750');
    await expect.poll(() => run.locator('[data-reading="power.draw_watts"]').innerText()).toMatch(/\d/);
    const result = page.locator('.gpumon-run-items > li');
    await expect.poll(() => result.innerText()).toMatch(/4,020.GB\/s.*84.%.*534.µs.*541.µs.*verified/s);
    for (const scheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.locator(`[data-gpumon-scheme=${scheme}]`).waitFor();
      for (const text of ['.gpumon-run-status', '.gpumon-run-text', '.gpumon-run-does', '.gpumon-run-part']) {
        const contrast = (): Promise<number> => contrastOf(page.locator(text).first());
        await expect.poll(contrast, { message: `${text} ${scheme}` }).toBeGreaterThan(4.5);
      }
    }
    worker.finish();
    await page.locator('.gpumon-run[data-status=done]').waitFor();
    const told = page.getByTestId('gpumon-events').locator('li');
    await told.filter({ hasText: 'Run of triad is done.' }).filter({ hasText: 'GPU 1' }).waitFor();
    expect(conduct).toEqual({ errors: [], foreignRequests: [] });
  });

  it('is cancelled, and is there again after a reload', async () => {
    await start();
    await running().getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.gpumon-run[data-status=cancelled]').waitFor();
    await page.reload();
    await new View(page).live();
    await page.getByTestId('gpumon-run').click();
    const past = page.locator('.gpumon-run[data-status=cancelled]');
    await past.locator('.gpumon-run-items > li').filter({ hasText: '4,020' }).waitFor();
  });
});

describe('a run from the panel', () => {
  let jupyter: JupyterServer;
  beforeEach(async () => {
    jupyter = await JupyterServer.start({ ...source, ...worker.env });
  });
  afterEach(async () => {
    await jupyter.stop();
  });

  it('goes through the proxy of Jupyter, under its prefix', async () => {
    const lab = new Lab(page);
    await lab.open(`${jupyter.page('lab')}&reset`);
    await lab.showPanel();
    await new View(page).live();
    await start();
    await page.locator('.gpumon-run-items > li').filter({ hasText: '4,020' }).waitFor();
    await running().getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.gpumon-run[data-status=cancelled]').waitFor();
  });
});
