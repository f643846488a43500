/** The panel in Notebook 7, which has neither JupyterLab's side bar tabs nor its layout restorer. */

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { closePage, launchBrowser, newPage, type Conduct } from './browser';
import { Charts } from './charts';
import { JupyterServer } from './jupyter';
import { Lab } from './lab';
import { notebookOf } from './notebook-file';
import { View } from './view';

describe('the panel in Notebook 7', () => {
  let browser: Browser;
  let jupyter: JupyterServer;
  let page: Page;
  let conduct: Conduct;
  let notebook: Lab;
  let view: View;

  beforeAll(async () => {
    browser = await launchBrowser();
    jupyter = await JupyterServer.start({ GPUMON_SOURCE: 'sim:2' });
    jupyter.write('empty.ipynb', notebookOf([]));
  });
  beforeEach(async () => {
    ({ page, conduct } = await newPage(browser));
    notebook = new Lab(page);
    view = new View(page);
  });
  afterEach(async ({ task }) => {
    await closePage(page, task);
  });
  afterAll(async () => {
    await browser.close();
    await jupyter.stop();
  });

  for (const [where, path] of [
    ['beside the file list', 'tree'],
    ['beside a notebook', 'notebooks/empty.ipynb'],
  ] as const) {
    it(`is opened by its command ${where}`, async () => {
      await page.goto(jupyter.page(path));
      await page.locator('#main-panel, .jp-Notebook').first().waitFor();
      await notebook.command('Show GPUs');
      await view.live();
      expect(await notebook.panel.isVisible()).toBe(true);
      await view.changes(0, 'power.draw_watts');
      expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
    });
  }

  it('is in the menu of a notebook, and opens charts on a page of their own', async () => {
    await page.goto(jupyter.page('notebooks/empty.ipynb'));
    await page.locator('.jp-Notebook').waitFor();
    await notebook.menu('View', 'Left Sidebar', 'GPUs');
    await view.live();
    expect(await notebook.panel.isVisible()).toBe(true);
    const opened = page.context().waitForEvent('page');
    await view.gpu(1).getByRole('button', { name: 'Open charts' }).click();
    const charts = new Charts(await opened);
    await charts.live();
    await expect.poll(() => charts.names()).toContain('gpu 1 power');
  });
});
