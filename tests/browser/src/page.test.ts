/** Tests of the standalone page of `gpumon serve`. */

import type { Locator } from 'playwright-core';
import { describe, expect } from 'vitest';

import { Charts } from './charts';
import { contrastOf } from './contrast';
import { it } from './fixtures';
import { GpumonServer } from './gpumon';
import { newScenario } from './machine';

/** A GPU that waits most of the time for a process that computes on the CPU. */
const HOST_BOUND =
  '[[gpu]]\nindex = 0\nutilization_percent = 30\nsm_percent = 29\ntensor_percent = 20\n' +
  'pcie_per_second = "10 MB"\n' +
  '[[process]]\ngpu = 0\npid = 7\nmemory = "9 GiB"\ncpu_percent = 100\n';

describe('standalone page', () => {
  const source = { GPUMON_SOURCE: 'sim:2' };
  let server: GpumonServer;

  it.beforeEach(async ({ page, view }) => {
    server = await GpumonServer.start(source);
    await page.goto(server.url);
    await view.waitUntilLive();
  });
  it.afterEach(async () => {
    await server.stop();
  });

  it('page shows changing values without foreign requests', async ({ conduct, view }) => {
    expect(await view.gpuIndexes()).toEqual([0, 1]);
    await view.waitForChange(0, 'power.draw_watts');
    await view.simulatedLabel.waitFor();
    expect(conduct).toEqual({ errors: [], foreignRequests: [] });
  });

  it('line charts on GPU cards are updated', async ({ view }) => {
    const canvas = view.findCard(0).locator('[data-metric] canvas').first();
    await canvas.waitFor();
    const picture = (): Promise<string> =>
      canvas.evaluate((element: HTMLCanvasElement) => element.toDataURL());
    const before = await picture();
    await expect.poll(picture).not.toBe(before);
  });

  it('text is readable in light and dark', async ({ page, view }) => {
    const value = view.findCard(0).locator('[data-reading]').first();
    const schemes: string[] = [];
    for (const scheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.locator(`[data-gpumon-scheme=${scheme}]`).waitFor();
      await expect.poll(() => contrastOf(value), { message: scheme }).toBeGreaterThan(4.5);
      schemes.push(await page.evaluate(() => getComputedStyle(document.body).backgroundColor));
    }
    expect(schemes[0]).not.toBe(schemes[1]);
  });

  it('mark appears in all open pages', async ({ page, charts }) => {
    await page.goto(`${server.url}#charts`);
    await charts.waitUntilLive();
    const other = await page.context().newPage();
    await other.goto(`${server.url}#charts`);
    const others = new Charts(other);
    await others.waitUntilLive();

    const chart = charts.findPlot('all power.draw_watts').locator('.gpumon-plot-chart');
    const { x, y, width } = (await chart.boundingBox()) ?? { x: 0, y: 0, width: 0 };
    const pointed = x + width * 0.7;
    // The charts are paused, because live charts move away from the pointer. Pausing does not
    // change the layout.
    await page.keyboard.press(' ');
    await charts.findButton('Resume').waitFor();
    expect(await chart.boundingBox()).toMatchObject({ x, y, width });
    await page.mouse.move(pointed, y + 40);
    await page.keyboard.press('m');
    await page.keyboard.type('epoch 3');
    await page.keyboard.press('Enter');
    await expect.poll(() => page.locator('.gpumon-mark-form').isVisible()).toBe(false);
    await page.mouse.move(0, 0);
    await page.mouse.move(pointed, y + 40);
    await expect
      .poll(() => charts.root.locator('.gpumon-tooltip').innerText())
      .toContain('epoch 3');

    // The server rejects a text that consists only of a space.
    await page.keyboard.press('m');
    await page.keyboard.type(' ');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('1 to 100 characters').waitFor();
    await page.keyboard.press('Escape');
    await expect.poll(() => page.locator('.gpumon-mark-form').isVisible()).toBe(false);

    await other.goto(server.url);
    await other.getByTestId('gpumon-events').getByText('Mark: epoch 3').waitFor();
    await other.close();
  });

  it('chart colors stay distinct in forced-colors mode', async ({ page, charts }) => {
    await page.emulateMedia({ forcedColors: 'active' });
    await page.goto(`${server.url}#charts`);
    await charts.waitUntilLive();
    const backs = (elements: Locator): Promise<string[]> =>
      elements.evaluateAll((all) => all.map((one) => getComputedStyle(one).backgroundColor));
    const [first, second] = await backs(
      charts.findPlot('all power.draw_watts').locator('.gpumon-swatch'),
    );
    expect(first).not.toBe(second);
    const [pressed] = await backs(charts.findButton('Overlaid'));
    const [other] = await backs(charts.findButton('By GPU'));
    expect(pressed).not.toBe(other);
  });

  it('collector restart is reported until samples arrive', async ({ view }) => {
    const record = await view.recordStates();
    const killed = server.collector;
    expect(killed).not.toBeNull();
    process.kill(killed ?? 0, 'SIGKILL');
    await record.waitForState('collector-restarting', /restarting/);
    await view.waitUntilLive();
    await view.waitForChange(0, 'power.draw_watts');
    expect(server.collector).not.toBe(killed);
  });

  it('stopped server is reported until it runs again', async ({ view }) => {
    const record = await view.recordStates();
    const { port } = server;
    await server.stop();
    await record.waitForState('reconnecting', /Reconnecting/);
    await expect.poll(() => view.status.isVisible()).toBe(true);
    server = await GpumonServer.start(source, port);
    await view.waitUntilLive();
    await view.waitForChange(0, 'power.draw_watts');
  });
});

describe('page of a GPU that waits', () => {
  let server: GpumonServer;

  it.beforeEach(async () => {
    server = await GpumonServer.start({ GPUMON_SOURCE: `sim:${newScenario(HOST_BOUND)}` });
  });
  it.afterEach(async () => {
    await server.stop();
  });

  it('card and chart show the main cause', async ({ page, view, charts }) => {
    await page.setViewportSize({ width: 250, height: 800 });
    await page.goto(server.url);
    await view.waitUntilLive();
    const line = page.getByTestId('gpumon-limit');
    await expect.poll(() => line.textContent()).toMatch(/^Host-bound \d\d\s%: A process uses 100/);
    expect(await line.getAttribute('title')).toContain('Prepare data in worker processes');
    // A long text is cut off instead of changing the layout.
    const card = await view.findCard(0).boundingBox();
    expect(card?.width).toBe(250);
    expect((await line.boundingBox())?.height).toBeLessThan(20);
    await page.setViewportSize({ width: 1280, height: 800 });
    await page.goto(`${server.url}#charts`);
    await charts.waitUntilLive();
    await expect
      .poll(() => charts.readLegend('gpu 0 limits'))
      .toContainEqual(expect.stringMatching(/^Host-bound \d\d %$/));
    // The time at the pointer is fixed, so the pointer moves until it is at a recorded time.
    const chart = charts.findPlot('gpu 0 limits').locator('.gpumon-plot-chart');
    const { x, y, width } = (await chart.boundingBox()) ?? { x: 0, y: 0, width: 0 };
    const readTooltip = async (): Promise<string> => {
      await page.mouse.move(x + width - 9, y + 40);
      await page.mouse.move(x + width - 8, y + 40);
      return charts.root.locator('.gpumon-tooltip').innerText();
    };
    await expect.poll(readTooltip).toContain('Host-bound');
  });
});
