/**
 * Screenshots of a notebook whose cell has used a GPU, and of the panel, which shows the notebook
 * as a holder.
 */

import { expect, it } from 'vitest';

import { newPage } from '../src/browser';
import { Charts } from '../src/charts';
import { Lab } from '../src/lab';
import { View } from '../src/view';
import { saveImage } from './images';
import { makeProcessScript, startNotebooks } from './notebooks';

/** Cells that only wait, because the fake library's script determines the use of the GPU. */
const CODE = [
  'import time\n\ndef train(epochs):\n    for _ in range(epochs):\n        time.sleep(1)',
  'train(epochs=12)',
  'train(epochs=2)',
];

it('images of a notebook next to the panel', async () => {
  const { browser, jupyter, train, evaluation, script } = await startNotebooks(CODE);
  const growing = [
    [0, '44 GiB'],
    [10, '44 GiB'],
    [16, '61 GiB'],
  ];
  script(
    `gpus = 2\n[[gpu]]\nindex = 0\nprofile = "training"\nmemory_used = "82 GiB"\n` +
      makeProcessScript(0, train, growing, 88) +
      makeProcessScript(0, evaluation, '12.4 GiB', 2) +
      makeProcessScript(1, evaluation, '30 GiB', 0),
  );
  const { page } = await newPage(browser, {
    viewport: { width: 1200, height: 620 },
    deviceScaleFactor: 1.5,
  });
  const lab = new Lab(page);
  const view = new View(page);
  await lab.open(`${jupyter.pageUrl('lab/tree/train.ipynb')}&reset`);
  await lab.showPanel();
  await lab.widenPanel(330);
  await view.waitUntilLive();
  await page.locator('.jp-CodeCell .cm-content').first().click();
  await page.getByRole('menuitem', { name: 'Run', exact: true }).click();
  await page
    .locator('.lm-Menu-item', { hasText: /^Run All Cells/ })
    .first()
    .click();
  const lines = page.locator('[data-testid=gpumon-cell]:not([data-running])');
  await lines.nth(1).waitFor();
  await saveImage(page, 'notebook.png');

  // This screenshot shows the charts of the GPU with the cells that ran on it.
  await page
    .locator('#gpumon-panel [data-gpu-index="0"]')
    .getByRole('button', { name: 'Open charts' })
    .click();
  await page.setViewportSize({ width: 1360, height: 1000 });
  const charts = new Charts(page);
  await charts.waitUntilLive();
  await charts.chooseTimeRange(/^1\smin$/);
  await page.getByTestId('gpumon-cells').locator('tbody tr').first().waitFor();
  // The charts draw the memory of holders only from the time at which the charts were opened.
  // Therefore the program waits until there is enough to show.
  await page.waitForTimeout(15_000);
  await saveImage(page, 'charts.png');
  await lab.selectTheme('JupyterLab Dark');
  await page.locator('[data-testid=gpumon-dashboard][data-gpumon-scheme=dark]').waitFor();
  await saveImage(page, 'charts-dark.png');
  const before = await charts.root.evaluate((root) => getComputedStyle(root).backgroundColor);
  await lab.selectTheme('Catppuccin Mocha');
  await expect
    .poll(() => charts.root.evaluate((root) => getComputedStyle(root).backgroundColor))
    .not.toBe(before);
  await saveImage(page, 'charts-catppuccin.png');
});
