/** Tests of the overview with axe-core, on the page and in the panel, in light and dark. */

import { expect } from 'vitest';

import { findViolations } from './axe';
import { it } from './fixtures';
import { GpumonServer } from './gpumon';

it.for([1, 2, 8])('page of %i GPUs passes axe', async (gpus, { page, view, onTestFinished }) => {
  const server = await GpumonServer.start({ GPUMON_SOURCE: `sim:${gpus}` });
  onTestFinished(() => server.stop());
  await page.goto(server.url);
  await view.waitUntilLive();
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.locator(`[data-gpumon-scheme=${scheme}]`).waitFor();
    expect(await findViolations(page, '[data-testid=gpumon]'), scheme).toEqual([]);
  }
  // All menus and details are opened, so that their content is checked as well.
  await page.locator('.gpumon-head-menu > summary').click();
  const toggle = view.findCard(0).locator('.gpumon-toggle');
  if ((await toggle.getAttribute('aria-expanded')) !== 'true') {
    await toggle.press('Enter');
  }
  await view.findCard(0).locator('.gpumon-more').click();
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.locator(`[data-gpumon-scheme=${scheme}]`).waitFor();
    expect(await findViolations(page, '[data-testid=gpumon]'), scheme).toEqual([]);
  }
});

it('panel passes the axe accessibility check', async ({ simulated, page, lab, view }) => {
  await lab.open(`${simulated.pageUrl('lab')}&reset`);
  await lab.showPanel();
  await view.waitUntilLive();
  for (const theme of ['JupyterLab Light', 'JupyterLab Dark']) {
    await lab.selectTheme(theme);
    const scheme = theme.endsWith('Dark') ? 'dark' : 'light';
    await page.locator(`#gpumon-panel [data-gpumon-scheme=${scheme}]`).waitFor();
    expect(await findViolations(page, '#gpumon-panel'), theme).toEqual([]);
  }
});
