/** A notebook whose cell has used a GPU, beside the panel that names it. */

import { writeFileSync } from 'node:fs';
import path from 'node:path';

import { expect, it, onTestFinished } from 'vitest';

import { launchBrowser, newPage } from '../src/browser';
import { Charts } from '../src/charts';
import { JupyterServer } from '../src/jupyter';
import { Lab } from '../src/lab';
import { newFolder, overFake } from '../src/machine';
import { notebookOf } from '../src/notebook-file';
import { View } from '../src/view';
import { take } from './images';

/** Nothing here computes: what the GPU does is the fake library's script, and this waits for its end. */
const CODE = [
  'import time\n\ndef train(epochs):\n    for _ in range(epochs):\n        time.sleep(1)',
  'train(epochs=12)',
  'train(epochs=2)',
];

it('picture of a notebook beside the panel', async () => {
  const scenario = path.join(newFolder(), 'scenario.toml');
  const browser = await launchBrowser();
  onTestFinished(() => browser.close());
  const jupyter = await JupyterServer.start(overFake(scenario));
  onTestFinished(() => jupyter.stop());
  jupyter.write('train.ipynb', notebookOf(CODE));
  jupyter.write('eval.ipynb', notebookOf([]));
  const train = await jupyter.startKernel('train.ipynb');
  const evaluation = await jupyter.startKernel('eval.ipynb');
  const holds = (gpu: number, pid: number, memory: unknown, percent: number): string =>
    `[[process]]\ngpu = ${String(gpu)}\npid = ${String(pid)}\nmemory = ${JSON.stringify(memory)}\nsm_percent = ${String(percent)}\n`;
  const growing = [
    [0, '44 GiB'],
    [10, '44 GiB'],
    [16, '61 GiB'],
  ];
  writeFileSync(
    scenario,
    `start_ms = ${String(Date.now())}\ngpus = 2\n[[gpu]]\nindex = 0\nprofile = "training"\nmemory_used = "82 GiB"\n` +
      holds(0, train.pid, growing, 88) +
      holds(0, evaluation.pid, '12.4 GiB', 2) +
      holds(1, evaluation.pid, '30 GiB', 0),
  );
  const { page } = await newPage(browser, { viewport: { width: 1200, height: 620 }, deviceScaleFactor: 1.5 });
  const lab = new Lab(page);
  const view = new View(page);
  await lab.open(`${jupyter.page('lab/tree/train.ipynb')}&reset`);
  await lab.showPanel();
  await lab.widen(330);
  await view.live();
  await page.locator('.jp-CodeCell .cm-content').first().click();
  await page.getByRole('menuitem', { name: 'Run', exact: true }).click();
  await page
    .locator('.lm-Menu-item', { hasText: /^Run All Cells/ })
    .first()
    .click();
  const lines = page.locator('[data-testid=gpumon-cell]:not([data-running])');
  await lines.nth(1).waitFor();
  await take(page, 'notebook.png');

  // The charts of the GPU, with the cells that ran on it.
  await page.locator('#gpumon-panel [data-gpu-index="0"]').getByRole('button', { name: 'Open charts' }).click();
  await page.setViewportSize({ width: 1360, height: 1000 });
  const charts = new Charts(page);
  await charts.live();
  await charts.control(/^1\smin$/).click();
  await page.getByTestId('gpumon-cells').locator('tbody tr').first().waitFor();
  // What holders have is drawn from now on.
  await page.waitForTimeout(15_000);
  await take(page, 'charts.png');
  await lab.theme('JupyterLab Dark');
  await page.locator('[data-testid=gpumon-dashboard][data-gpumon-scheme=dark]').waitFor();
  await take(page, 'charts-dark.png');
  const before = await charts.root.evaluate((root) => getComputedStyle(root).backgroundColor);
  await lab.theme('Catppuccin Mocha');
  await expect.poll(() => charts.root.evaluate((root) => getComputedStyle(root).backgroundColor)).not.toBe(before);
  await take(page, 'charts-catppuccin.png');
});
