/**
 * Screenshots of memory that runs out: the explanation below a failed cell, and the warning that
 * memory is about to be full.
 */

import { it } from 'vitest';

import { newPage } from '../src/browser';
import { Lab } from '../src/lab';
import { saveImage } from './images';
import { makeProcessScript, startNotebooks } from './notebooks';

/** A cell that raises an error like PyTorch's, because PyTorch itself is not installed. */
const CODE = [
  'raise type("OutOfMemoryError", (RuntimeError,), {})(\n    "CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 139.81 GiB of which 12.73 GiB is free.")',
];

it('images of memory that runs out', async () => {
  const { browser, jupyter, train, evaluation, script } = await startNotebooks(CODE);
  const growing = [
    [0, '30 GiB'],
    [600, '630 GiB'],
  ];
  const all = [
    [0, '66 GiB'],
    [72, '138 GiB'],
  ];
  script(
    `[[gpu]]\nindex = 0\nmemory_used = ${JSON.stringify(all)}\n` +
      makeProcessScript(0, train, growing, 40) +
      makeProcessScript(0, evaluation, '36 GiB', 40),
  );
  const { page } = await newPage(browser, {
    viewport: { width: 1200, height: 520 },
    deviceScaleFactor: 1.5,
  });
  const lab = new Lab(page);
  await lab.open(`${jupyter.pageUrl('lab/tree/train.ipynb')}&reset`);
  await page.locator('#jp-main-statusbar').getByTestId('gpumon-chip').waitFor();
  await page.locator('.jp-CodeCell .cm-content').first().click();
  await page.keyboard.press('Control+Enter');
  await page.getByTestId('gpumon-oom').waitFor();
  await page.locator('.Toastify__toast', { hasText: 'Memory full in' }).waitFor();
  await saveImage(page, 'memory.png');
});
