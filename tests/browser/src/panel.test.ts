/** The panel in JupyterLab, behind a prefix. */

import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { Charts } from './charts';
import { contrastOf } from './contrast';
import { BEFORE_KB, kilobytes } from './downloads';
import { it } from './fixtures';
import { JupyterServer } from './jupyter';
import type { Lab } from './lab';
import { isRunning } from './processes';
import type { View } from './view';

/** The charts of the first GPU, from its card in the panel. */
async function openCharts(page: Page, lab: Lab, view: View): Promise<Charts> {
  await lab.showPanel();
  await view.live();
  await view.gpu(0).getByRole('button', { name: 'Open charts' }).click();
  const charts = new Charts(page);
  await charts.live();
  return charts;
}

describe('the panel in JupyterLab', () => {
  // Each test begins with JupyterLab's own layout.
  it.beforeEach(async ({ simulated, lab }) => {
    await lab.open(`${simulated.page('lab')}&reset`);
  });

  it('is small until it is opened, then shows values that change, labels simulated ones, and causes no errors', async ({
    page,
    conduct,
    lab,
    view,
  }) => {
    expect(await lab.panel.isVisible()).toBe(false);
    expect(await kilobytes(page, 'gpumon')).toBeLessThan(BEFORE_KB);
    await lab.showPanel();
    await view.live();
    expect(await view.indices()).toEqual([0, 1]);
    await view.changes(0, 'power.draw_watts');
    await view.simulatedLabel.waitFor();
    expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
    expect(conduct.foreignRequests).toEqual([]);
  });

  it('is back after a reload', async ({ lab, view }) => {
    await lab.showPanel();
    await view.live();
    await lab.reload();
    await view.live();
    expect(await lab.panel.isVisible()).toBe(true);
    await view.changes(0, 'power.draw_watts');
  });

  it('leads to the charts of a GPU, which are back after a reload with what they showed', async ({
    page,
    conduct,
    lab,
    view,
  }) => {
    const charts = await openCharts(page, lab, view);
    const tab = page.locator('#jp-main-dock-panel .lm-TabBar-tab', { hasText: 'GPU 0' });
    await expect.poll(() => tab.count()).toBe(1);
    const stored = page.waitForRequest(
      (request) => request.method() === 'PUT' && (request.postData() ?? '').includes('span=5'),
    );
    await charts.chooseTimeRange(/^5\smin$/);
    await (await stored).response();
    await lab.reload();
    await charts.live();
    await expect.poll(() => charts.timeRange()).toBe('5 min');
    await expect.poll(() => charts.names()).toContain('gpu 0 power');
    expect((await charts.names()).filter((name) => name.startsWith('gpu 1'))).toEqual([]);
    // Asked for again, it is the same one.
    await view.gpu(0).getByRole('button', { name: 'Open charts' }).click();
    await page.waitForTimeout(500);
    expect(await page.getByTestId('gpumon-dashboard').count()).toBe(1);
    expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
  });

  it('is opened by its command', async ({ lab, view }) => {
    await lab.command('Show GPUs');
    await view.live();
    expect(await lab.panel.isVisible()).toBe(true);
  });

  it('applies the settings', async ({ simulated, page, lab, view }) => {
    await simulated.choose({
      interval: 0.2,
      spanMinutes: 5,
      charts: ['Power', 'cpu', 'Swap', 'Powr'],
      memoryUnit: 'GB',
      temperatureUnit: '°F',
    });
    await lab.reload();
    await page.getByText('No chart is named "Powr". Did you mean "Power"?').waitFor();
    await lab.showPanel();
    await expect.poll(() => view.status.getAttribute('title')).toContain('every 0.2');
    await expect.poll(() => view.root.getByRole('button', { name: /^5\smin$/ }).count()).toBe(1);
    await expect.poll(() => view.gpu(0).innerText()).toMatch(/\d\s°F/);
    await expect.poll(() => view.gpu(0).innerText()).toMatch(/\d\sGB/);
    await lab.command('GPU Charts');
    const charts = new Charts(page);
    await charts.live();
    await expect
      .poll(() => charts.names())
      .toEqual([
        'all power.draw_watts',
        'all power.instant_watts',
        'host cpu',
        'host host.swap.used_bytes',
      ]);
    await expect.poll(() => charts.timeRange()).toBe('5 min');
  });

  it('is in the launcher', async ({ page, view }) => {
    const card = page.locator('.jp-LauncherCard', { hasText: 'GPU' });
    await expect.poll(() => card.count()).toBe(1);
    await card.locator('svg[data-icon="gpumon:gpu"]').waitFor();
    await card.click();
    await view.live();
  });

  it('says that the collector is being replaced, and goes on with the next', async ({
    simulated,
    lab,
    view,
  }) => {
    await lab.showPanel();
    await view.live();
    const record = await view.recordStates();
    const killed = simulated.collector;
    expect(killed).not.toBeNull();
    process.kill(killed ?? 0, 'SIGKILL');
    await record.passed('collector-restarting', /restarting/);
    await view.live();
    await view.changes(0, 'power.draw_watts');
    expect(simulated.collector).not.toBe(killed);
  });

  it('comes back when its server has been killed', async ({ simulated, lab, view }) => {
    await lab.showPanel();
    await view.live();
    const record = await view.recordStates();
    const killed = simulated.gpumons;
    expect(killed).toHaveLength(2);
    for (const pid of killed) {
      process.kill(pid, 'SIGKILL');
    }
    await record.passed('reconnecting', /Reconnecting/);
    await view.live();
    await view.changes(0, 'power.draw_watts');
  });

  it("is readable in the light and the dark theme and in one that is not JupyterLab's, and so are charts", async ({
    page,
    lab,
    view,
  }) => {
    const charts = await openCharts(page, lab, view);
    const value = view.gpu(0).locator('[data-reading]').first();
    const background = (): Promise<string> =>
      lab.panel.evaluate((panel) => getComputedStyle(panel).backgroundColor);
    const backgrounds = [await background()];
    for (const [theme, scheme] of [
      ['JupyterLab Dark', 'dark'],
      ['Catppuccin Mocha', 'dark'],
      ['JupyterLab Light', 'light'],
    ] as const) {
      await lab.theme(theme);
      await page.locator(`[data-testid=gpumon][data-gpumon-scheme=${scheme}]`).waitFor();
      await page.locator(`[data-testid=gpumon-dashboard][data-gpumon-scheme=${scheme}]`).waitFor();
      // The style sheet of a theme may come after its name.
      await expect.poll(background, { message: theme }).not.toBe(backgrounds.at(-1));
      backgrounds.push(await background());
      for (const text of [charts.root.locator('[data-reading]').first(), value]) {
        await expect.poll(() => contrastOf(text), { message: theme }).toBeGreaterThan(4.5);
      }
    }
    expect(new Set(backgrounds).size).toBe(3);
  });
});

describe('gpumon behind Jupyter', () => {
  it('ends with it, also where Jupyter is killed', async () => {
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const jupyter = await JupyterServer.start({ GPUMON_SOURCE: 'sim' });
      const response = await fetch(jupyter.page('gpumon/healthz'));
      expect(response.status).toBe(200);
      await expect.poll(() => jupyter.gpumons.length).toBe(2);
      const pids = jupyter.gpumons;
      await jupyter.stop(signal);
      await expect.poll(() => pids.filter(isRunning)).toEqual([]);
    }
  });
});
