/** Memory that runs out: the words below a cell that failed, and the notification before it happens again. */

import { writeFileSync } from 'node:fs';
import path from 'node:path';

import { it, onTestFinished } from 'vitest';

import { launchBrowser, newPage } from '../src/browser';
import { JupyterServer } from '../src/jupyter';
import { Lab } from '../src/lab';
import { newFolder, overFake } from '../src/machine';
import { notebookOf } from '../src/notebook-file';
import { take } from './images';

/** What PyTorch raises; there is no PyTorch here. */
const CODE = [
  'raise type("OutOfMemoryError", (RuntimeError,), {})(\n    "CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 139.81 GiB of which 12.73 GiB is free.")',
];

it('picture of memory that runs out', async () => {
  const scenario = path.join(newFolder(), 'scenario.toml');
  const browser = await launchBrowser();
  onTestFinished(() => browser.close());
  const jupyter = await JupyterServer.start(overFake(scenario));
  onTestFinished(() => jupyter.stop());
  jupyter.write('train.ipynb', notebookOf(CODE));
  jupyter.write('eval.ipynb', notebookOf([]));
  const train = await jupyter.startKernel('train.ipynb');
  const evaluation = await jupyter.startKernel('eval.ipynb');
  const holds = (pid: number, memory: unknown): string =>
    `[[process]]\ngpu = 0\npid = ${String(pid)}\nmemory = ${JSON.stringify(memory)}\nsm_percent = 40\n`;
  const growing = [
    [0, '30 GiB'],
    [600, '630 GiB'],
  ];
  const all = [
    [0, '66 GiB'],
    [72, '138 GiB'],
  ];
  writeFileSync(
    scenario,
    `start_ms = ${String(Date.now())}\n[[gpu]]\nindex = 0\nmemory_used = ${JSON.stringify(all)}\n` +
      holds(train.pid, growing) +
      holds(evaluation.pid, '36 GiB'),
  );
  const { page } = await newPage(browser, { viewport: { width: 1200, height: 520 }, deviceScaleFactor: 1.5 });
  const lab = new Lab(page);
  await lab.open(`${jupyter.page('lab/tree/train.ipynb')}&reset`);
  await page.locator('#jp-main-statusbar').getByTestId('gpumon-chip').waitFor();
  await page.locator('.jp-CodeCell .cm-content').first().click();
  await page.keyboard.press('Control+Enter');
  await page.getByTestId('gpumon-oom').waitFor();
  await page.locator('.Toastify__toast', { hasText: 'Memory full in' }).waitFor();
  await take(page, 'memory.png');
});
