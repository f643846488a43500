/** Tests of the panel in JupyterLab, behind a URL prefix. */

import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { Charts } from './charts';
import { contrastOf } from './contrast';
import { MAX_EARLY_KB, downloadedKilobytes } from './downloads';
import { it } from './fixtures';
import { JupyterServer } from './jupyter';
import type { Lab } from './lab';
import { isRunning } from './processes';
import type { View } from './view';

/** Opens the charts of the first GPU from its card in the panel. */
async function openCharts(page: Page, lab: Lab, view: View): Promise<Charts> {
  await lab.showPanel();
  await view.waitUntilLive();
  await view.findCard(0).getByRole('button', { name: 'Open charts' }).click();
  const charts = new Charts(page);
  await charts.waitUntilLive();
  return charts;
}

describe('panel in JupyterLab', () => {
  // JupyterLab's default layout is restored before each test.
  it.beforeEach(async ({ simulated, lab }) => {
    await lab.open(`${simulated.pageUrl('lab')}&reset`);
  });

  it('panel loads little until opened, then updates', async ({ page, conduct, lab, view }) => {
    expect(await lab.panel.isVisible()).toBe(false);
    expect(await downloadedKilobytes(page, 'gpumon')).toBeLessThan(MAX_EARLY_KB);
    await lab.showPanel();
    await view.waitUntilLive();
    expect(await view.gpuIndexes()).toEqual([0, 1]);
    await view.waitForChange(0, 'power.draw_watts');
    await view.simulatedLabel.waitFor();
    expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
    expect(conduct.foreignRequests).toEqual([]);
  });

  it('panel is restored after reload', async ({ lab, view }) => {
    await lab.showPanel();
    await view.waitUntilLive();
    await lab.reload();
    await view.waitUntilLive();
    expect(await lab.panel.isVisible()).toBe(true);
    await view.waitForChange(0, 'power.draw_watts');
  });

  it('charts of GPU are restored after reload', async ({ page, conduct, lab, view }) => {
    const charts = await openCharts(page, lab, view);
    const tab = page.locator('#jp-main-dock-panel .lm-TabBar-tab', { hasText: 'GPU 0' });
    await expect.poll(() => tab.count()).toBe(1);
    const stored = page.waitForRequest(
      (request) => request.method() === 'PUT' && (request.postData() ?? '').includes('span=5'),
    );
    await charts.chooseTimeRange(/^5\smin$/);
    await (await stored).response();
    await lab.reload();
    await charts.waitUntilLive();
    await expect.poll(() => charts.timeRange()).toBe('5 min');
    await expect.poll(() => charts.chartNames()).toContain('gpu 0 power');
    expect((await charts.chartNames()).filter((name) => name.startsWith('gpu 1'))).toEqual([]);
    // Opening the same charts again must only show the existing tab.
    await view.findCard(0).getByRole('button', { name: 'Open charts' }).click();
    await page.waitForTimeout(500);
    expect(await page.getByTestId('gpumon-dashboard').count()).toBe(1);
    expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
  });

  it('command opens the panel', async ({ lab, view }) => {
    await lab.runCommand('Show GPUs');
    await view.waitUntilLive();
    expect(await lab.panel.isVisible()).toBe(true);
  });

  it('settings are applied', async ({ simulated, page, lab, view }) => {
    await simulated.setSettings({
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
    await expect.poll(() => view.findCard(0).innerText()).toMatch(/\d\s°F/);
    await expect.poll(() => view.findCard(0).innerText()).toMatch(/\d\sGB/);
    await lab.runCommand('GPU Charts');
    const charts = new Charts(page);
    await charts.waitUntilLive();
    await expect
      .poll(() => charts.chartNames())
      .toEqual([
        'all power.draw_watts',
        'all power.instant_watts',
        'host cpu',
        'host host.swap.used_bytes',
      ]);
    await expect.poll(() => charts.timeRange()).toBe('5 min');
  });

  it('launcher opens the panel', async ({ page, view }) => {
    const card = page.locator('.jp-LauncherCard', { hasText: 'GPU' });
    await expect.poll(() => card.count()).toBe(1);
    await card.locator('svg[data-icon="gpumon:gpu"]').waitFor();
    await card.click();
    await view.waitUntilLive();
  });

  it('collector restart is reported until samples arrive', async ({ simulated, lab, view }) => {
    await lab.showPanel();
    await view.waitUntilLive();
    const record = await view.recordStates();
    const killed = simulated.collector;
    expect(killed).not.toBeNull();
    process.kill(killed ?? 0, 'SIGKILL');
    await record.waitForState('collector-restarting', /restarting/);
    await view.waitUntilLive();
    await view.waitForChange(0, 'power.draw_watts');
    expect(simulated.collector).not.toBe(killed);
  });

  it('killed server is replaced', async ({ simulated, lab, view }) => {
    await lab.showPanel();
    await view.waitUntilLive();
    const record = await view.recordStates();
    const killed = simulated.gpumonPids;
    expect(killed).toHaveLength(2);
    for (const pid of killed) {
      process.kill(pid, 'SIGKILL');
    }
    await record.waitForState('reconnecting', /Reconnecting/);
    await view.waitUntilLive();
    await view.waitForChange(0, 'power.draw_watts');
  });

  it('panel and charts are readable in all themes', async ({ page, lab, view }) => {
    const charts = await openCharts(page, lab, view);
    const value = view.findCard(0).locator('[data-reading]').first();
    const background = (): Promise<string> =>
      lab.panel.evaluate((panel) => getComputedStyle(panel).backgroundColor);
    const backgrounds = [await background()];
    for (const [theme, scheme] of [
      ['JupyterLab Dark', 'dark'],
      ['Catppuccin Mocha', 'dark'],
      ['JupyterLab Light', 'light'],
    ] as const) {
      await lab.selectTheme(theme);
      await page.locator(`[data-testid=gpumon][data-gpumon-scheme=${scheme}]`).waitFor();
      await page.locator(`[data-testid=gpumon-dashboard][data-gpumon-scheme=${scheme}]`).waitFor();
      // A theme's style sheet may load after the name of the theme is set.
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
  it('gpumon ends with Jupyter, even if killed', async () => {
    for (const signal of ['SIGTERM', 'SIGKILL'] as const) {
      const jupyter = await JupyterServer.start({ GPUMON_SOURCE: 'sim' });
      const response = await fetch(jupyter.pageUrl('gpumon/healthz'));
      expect(response.status).toBe(200);
      await expect.poll(() => jupyter.gpumonPids.length).toBe(2);
      const pids = jupyter.gpumonPids;
      await jupyter.stop(signal);
      await expect.poll(() => pids.filter(isRunning)).toEqual([]);
    }
  });
});
