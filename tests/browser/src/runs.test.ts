/**
 * Tests of benchmark runs that are started on the page and in the panel. A script replaces the real
 * benchmark program.
 */

import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { findViolations } from './axe';
import { contrastOf } from './contrast';
import { it } from './fixtures';
import { GpumonServer } from './gpumon';
import { newScenario, makeFakeEnvironment } from './machine';
import { View } from './view';

const running = (page: Page): Locator => page.locator('.gpumon-run[data-status=running]');

/** Starts the workload `triad` by keyboard. */
async function startWorkload(page: Page, device: string): Promise<void> {
  const search = page.getByRole('combobox', { name: 'Search benchmarks' });
  // The dialog is opened repeatedly, because JupyterLab may take the focus from the button while it
  // is still loading.
  const open = async (): Promise<boolean> => {
    if (!(await search.isVisible())) {
      await (await new View(page).openMenuAction('gpumon-run')).press('Enter');
    }
    return search.and(page.locator(':focus')).isVisible();
  };
  await expect.poll(open).toBe(true);
  await page.getByLabel('Device', { exact: true }).selectOption({ label: device });
  await search.pressSequentially('triad');
  // Benchmarks are enabled once the device is known. At that time, the selection also changes.
  const enabled = page.locator('[role=option]:not([aria-disabled])', { hasText: 'triad' });
  await enabled.first().waitFor();
  // The first match is a preset with the same workload, so the second match is selected.
  await search.press('ArrowDown');
  await page.locator('[role=option][aria-selected=true]', { hasText: 'triad' }).waitFor();
  await search.press('Enter');
  await running(page).waitFor();
}

describe('run from the page', () => {
  let server: GpumonServer;
  it.beforeEach(async ({ worker, page }) => {
    server = await GpumonServer.start({
      ...makeFakeEnvironment(newScenario('gpus = 2\n')),
      ...worker.environment,
    });
    await page.goto(server.url);
    await new View(page).waitUntilLive();
  });
  it.afterEach(async () => {
    await server.stop();
  });

  it('run shows progress, readings and result', async ({ worker, page, conduct }) => {
    await startWorkload(page, 'GPU 1, H200');
    const run = running(page);
    await run.getByText('triad, 2 of 2: verifying').waitFor();
    await run.getByText('half of it').waitFor();
    await expect.poll(() => run.locator('progress').getAttribute('value')).toBe('0.75');
    await expect
      .poll(() => run.locator('[data-reading="power.draw_watts"]').innerText())
      .toMatch(/\d/);
    const result = page.locator('.gpumon-run-table tbody tr');
    await expect
      .poll(() => result.innerText())
      .toMatch(/4,020.GB\/s.*–.*4,800.GB\/s.*84.%.*534.µs.*verified/s);
    await run.getByText(/about .* left/).waitFor();
    for (const scheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme: scheme });
      await page.locator(`[data-gpumon-scheme=${scheme}]`).waitFor();
      for (const text of [
        '.gpumon-run-status',
        '.gpumon-run-text',
        '.gpumon-run-does',
        '.gpumon-run-table td',
      ]) {
        const contrast = (): Promise<number> => contrastOf(page.locator(text).first());
        await expect.poll(contrast, { message: `${text} ${scheme}` }).toBeGreaterThan(4.5);
      }
      expect(await findViolations(page, '[data-testid=gpumon-runs]'), scheme).toEqual([]);
    }
    worker.finishRuns();
    await page.locator('.gpumon-run[data-status=done]').waitFor();
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
    await page.locator('.gpumon-head-menu > summary:focus').waitFor();
    const eventItems = page.getByTestId('gpumon-events').locator('li');
    await eventItems
      .filter({ hasText: 'Run completed: triad' })
      .filter({ hasText: 'GPU 1' })
      .waitFor();
    expect(conduct).toEqual({ errors: [], foreignRequests: [] });
  });

  it('click selects benchmark, click outside closes dialog', async ({ page }) => {
    await (await new View(page).openMenuAction('gpumon-run')).click();
    const pcie = page.getByRole('option', { name: 'PCIe transfers' });
    await pcie.click();
    await page
      .locator('[role=option][aria-selected=true]', { hasText: 'PCIe transfers' })
      .waitFor();
    await page.getByLabel('Device', { exact: true }).selectOption({ label: 'CPU' });
    await page.locator('[role=option][aria-disabled]', { hasText: 'PCIe transfers' }).waitFor();
    await page
      .locator('[role=option][aria-selected=true]', { hasText: 'Memory bandwidth' })
      .waitFor();
    await page.mouse.click(5, 5);
    await page.getByRole('dialog').waitFor({ state: 'hidden' });
  });

  it('canceled run is listed after reload', async ({ page }) => {
    await startWorkload(page, 'GPU 1, H200');
    await page.locator('.gpumon-run-table tr').filter({ hasText: '4,020' }).waitFor();
    await running(page).getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.gpumon-run[data-status=canceled]').waitFor();
    await page.reload();
    await new View(page).waitUntilLive();
    await (await new View(page).openMenuAction('gpumon-run')).click();
    const past = page.locator('.gpumon-run[data-status=canceled]');
    await past.locator('.gpumon-run-table tr').filter({ hasText: '4,020' }).waitFor();
  });
});

describe('run from the panel', () => {
  it('run works through the Jupyter proxy', async ({ simulated, page, lab, view }) => {
    await lab.open(`${simulated.pageUrl('lab')}&reset`);
    await lab.showPanel();
    await view.waitUntilLive();
    await startWorkload(page, 'CPU');
    await page.locator('.gpumon-run-table tr').filter({ hasText: '4,020' }).waitFor();
    await running(page).getByRole('button', { name: 'Cancel' }).click();
    await page.locator('.gpumon-run[data-status=canceled]').waitFor();
  });
});
