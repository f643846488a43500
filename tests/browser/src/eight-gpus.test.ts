/** Eight GPUs, read through a library with NVML's interface, on the page and in the panel. */

import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, it, type TestContext } from 'vitest';

import { closePage, launchBrowser, newPage } from './browser';
import { eightGpus, HUNG, LOST } from './eight-gpus';
import { GpumonServer } from './gpumon';
import { JupyterServer } from './jupyter';
import { Lab } from './lab';
import { View } from './view';

const ALL = [0, 1, 2, 3, 4, 5, 6, 7];

let browser: Browser;

beforeAll(async () => {
  browser = await launchBrowser();
});
afterAll(async () => {
  await browser.close();
});

/** What has to be seen wherever these GPUs are shown. */
async function watchThemFail(view: View): Promise<void> {
  await view.live();
  const healths = (): Promise<(string | null)[]> => Promise.all(ALL.map((index) => view.health(index)));
  await expect.poll(healths).toEqual(ALL.map(() => 'ok'));
  expect(await view.indices()).toEqual(ALL);
  expect(await view.simulatedLabel.isVisible()).toBe(false);
  await view.changes(0, 'utilization.gpu_percent');

  const row = view.root.locator(`[data-pid="${String(process.pid)}"]`);
  expect(await row.getAttribute('data-process-gpu')).toBe('0');
  await expect.poll(() => row.innerText()).toContain('12.0');

  const expected = ALL.map((index) => ({ [LOST]: 'lost', [HUNG]: 'hung' })[index] ?? 'ok');
  await expect.poll(healths).toEqual(expected);
  expect(await view.indices()).toEqual(ALL);
  await expect.poll(() => view.gpu(LOST).innerText()).toMatch(/lost since/);
  await expect.poll(() => view.reading(LOST, 'power.draw_watts')).toBe('–');
  await expect.poll(() => view.gpu(HUNG).innerText()).toMatch(/no answer since/);
  expect(await view.root.getAttribute('data-gpumon-state')).toBe('live');
  for (const index of [0, 4, 7]) {
    await view.changes(index, 'power.draw_watts');
  }
}

// Both wait for the same time to pass, and do it beside each other.
describe.concurrent('eight GPUs, of which one is lost and one hangs', () => {
  it('are all on the page, and the others go on', async ({ task, onTestFinished }: TestContext) => {
    const { page, conduct } = await newPage(browser);
    onTestFinished(() => closePage(page, task));
    const server = await GpumonServer.start(eightGpus(process.pid));
    onTestFinished(() => server.stop());
    await page.goto(server.url);
    await watchThemFail(new View(page));
    expect(conduct).toEqual({ errors: [], foreignRequests: [] });
  });

  it('are all in the panel, and the others go on', async ({ task, onTestFinished }: TestContext) => {
    const { page } = await newPage(browser);
    onTestFinished(() => closePage(page, task));
    const jupyter = await JupyterServer.start(eightGpus(process.pid));
    onTestFinished(() => jupyter.stop());
    const lab = new Lab(page);
    await lab.open(jupyter.page('lab'));
    await lab.showPanel();
    await watchThemFail(new View(page));
  });
});
