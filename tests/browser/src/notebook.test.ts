/**
 * Tests of the panel in Notebook 7, which has neither JupyterLab's sidebar tabs nor its layout
 * restorer.
 */

import { describe, expect } from 'vitest';

import { Charts } from './charts';
import { it } from './fixtures';
import { notebookOf } from './notebook-file';

describe('panel in Notebook 7', () => {
  it.beforeEach(({ simulated }) => simulated.write('empty.ipynb', notebookOf([])));

  for (const [where, path] of [
    ['beside the file list', 'tree'],
    ['beside a notebook', 'notebooks/empty.ipynb'],
  ] as const) {
    it(`command opens the panel ${where}`, async ({ simulated, page, conduct, lab, view }) => {
      await page.goto(simulated.pageUrl(path));
      await page.locator('#main-panel, .jp-Notebook').first().waitFor();
      await lab.runCommand('Show GPUs');
      await view.waitUntilLive();
      expect(await lab.panel.isVisible()).toBe(true);
      await view.waitForChange(0, 'power.draw_watts');
      expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
    });
  }

  it('notebook menu opens panel and separate charts', async ({ simulated, page, lab, view }) => {
    await page.goto(simulated.pageUrl('notebooks/empty.ipynb'));
    await page.locator('.jp-Notebook').waitFor();
    await lab.selectMenuItem('View', 'Left Sidebar', 'GPUs');
    await view.waitUntilLive();
    expect(await lab.panel.isVisible()).toBe(true);
    const opened = page.context().waitForEvent('page');
    await view.findCard(1).getByRole('button', { name: 'Open charts' }).click();
    const charts = new Charts(await opened);
    await charts.waitUntilLive();
    await expect.poll(() => charts.chartNames()).toContain('gpu 1 power');
  });
});
