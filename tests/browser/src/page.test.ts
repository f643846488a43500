/** The standalone page of `gpumon serve`. */

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { closePage, launchBrowser, newPage, type Conduct } from './browser';
import { contrastOf } from './contrast';
import { GpumonServer } from './gpumon';
import { View } from './view';

describe('the page', () => {
  const source = { GPUMON_SOURCE: 'sim:2' };
  let browser: Browser;
  let server: GpumonServer;
  let page: Page;
  let conduct: Conduct;
  let view: View;

  beforeAll(async () => {
    browser = await launchBrowser();
    server = await GpumonServer.start(source);
  });
  beforeEach(async () => {
    ({ page, conduct } = await newPage(browser));
    view = new View(page);
    await page.goto(server.url);
    await view.live();
  });
  afterEach(async ({ task }) => {
    await closePage(page, task);
  });
  afterAll(async () => {
    await browser.close();
    await server.stop();
  });

  it('shows values that change, labels simulated ones, and asks no other machine', async () => {
    expect(await view.indices()).toEqual([0, 1]);
    await view.changes(0, 'power.draw_watts');
    await view.simulatedLabel.waitFor();
    expect(conduct).toEqual({ errors: [], foreignRequests: [] });
  });

  it('draws lines that move', async () => {
    const canvas = view.gpu(0).locator('[data-metric] canvas').first();
    await canvas.waitFor();
    const picture = (): Promise<string> => canvas.evaluate((element: HTMLCanvasElement) => element.toDataURL());
    const before = await picture();
    await expect.poll(picture).not.toBe(before);
  });

  it('is readable in light and in dark', async () => {
    const value = view.gpu(0).locator('[data-reading]').first();
    const schemes: string[] = [];
    for (const scheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.locator(`[data-gpumon-scheme=${scheme}]`).waitFor();
      await expect.poll(() => contrastOf(value), { message: scheme }).toBeGreaterThan(4.5);
      schemes.push(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    }
    expect(schemes[0]).not.toBe(schemes[1]);
  });

  it('says that the collector is being replaced, and goes on with the next', async () => {
    const record = await view.recordStates();
    const killed = server.collector;
    expect(killed).not.toBeNull();
    process.kill(killed ?? 0, 'SIGKILL');
    await record.passed('collector-restarting', /restarting/);
    await view.live();
    await view.changes(0, 'power.draw_watts');
    expect(server.collector).not.toBe(killed);
  });

  it('says that the server is gone, and comes back with it', async () => {
    const record = await view.recordStates();
    const { port } = server;
    await server.stop();
    await record.passed('reconnecting', /reconnecting/);
    await expect.poll(() => view.status.isVisible()).toBe(true);
    server = await GpumonServer.start(source, port);
    await view.live();
    await view.changes(0, 'power.draw_watts');
  });
});
