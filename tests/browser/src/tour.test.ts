/**
 * Tests of the panel's tour and of the benchmark dialog in JupyterLab, by keyboard and with the
 * texts for screen readers.
 */

import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { findViolations } from './axe';
import { it } from './fixtures';

const focused = (page: Page): Promise<string> =>
  page.evaluate(() => document.activeElement?.textContent.trim() ?? '');

describe('tour', () => {
  it('tour opens by command, closes by Escape', async ({ simulated, page, lab, view }) => {
    await lab.open(`${simulated.pageUrl('lab')}&reset`);
    await lab.showPanel();
    await view.waitUntilLive();
    const tour = page.getByTestId('gpumon-tour');
    await page.waitForTimeout(500);
    expect(await tour.count()).toBe(0);

    await lab.runCommand('Tour of the GPU Panel');
    const title = tour.locator('h2');
    await title.filter({ hasText: 'Your GPUs' }).waitFor();
    await expect.poll(() => focused(page)).toBe('Next');
    const pointed = await tour.locator('.gpumon-tour-frame').boundingBox();
    const card = await view.findCard(0).boundingBox();
    expect(Math.abs((pointed?.y ?? 0) - (card?.y ?? 100))).toBeLessThan(10);
    await page.keyboard.press('ArrowRight');
    await title.filter({ hasText: 'Processes' }).waitFor();
    await page.keyboard.press('Enter');
    await title.filter({ hasText: 'Charts' }).waitFor();
    await page.keyboard.press('Escape');
    await tour.waitFor({ state: 'detached' });
  });

  it('new user sees the tour once', async ({ simulated, page, lab, view }) => {
    await page.addInitScript(() =>
      Object.defineProperty(navigator, 'webdriver', { get: () => false }),
    );
    await lab.open(`${simulated.pageUrl('lab')}&reset`);
    await lab.showPanel();
    const tour = page.getByTestId('gpumon-tour');
    await tour.waitFor();
    await page.keyboard.press('Escape');
    await tour.waitFor({ state: 'detached' });
    await lab.reload();
    await view.waitUntilLive();
    await page.waitForTimeout(500);
    expect(await tour.count()).toBe(0);
  });
});

it('tour and dialog pass the axe accessibility check', async ({ simulated, page, lab, view }) => {
  await lab.open(`${simulated.pageUrl('lab')}&reset`);
  await lab.showPanel();
  await view.waitUntilLive();
  for (const theme of ['JupyterLab Light', 'JupyterLab Dark']) {
    await lab.selectTheme(theme);
    await page
      .locator(`[data-gpumon-scheme=${theme.endsWith('Dark') ? 'dark' : 'light'}]`)
      .waitFor();
    await lab.runCommand('Tour of the GPU Panel');
    await page.getByTestId('gpumon-tour').waitFor();
    expect(await findViolations(page, '[data-testid=gpumon-tour]'), theme).toEqual([]);
    await page.keyboard.press('Escape');
    await lab.runCommand('GPU Benchmarks');
    await page.getByRole('option', { name: 'Stress test' }).waitFor();
    expect(await findViolations(page, '[data-testid=gpumon-runs]'), theme).toEqual([]);
    await page.keyboard.press('Escape');
  }
});
