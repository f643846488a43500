/**
 * What a cell took of a GPU, below the cell: a real kernel whose GPU memory the fake library
 * scripts.
 */

import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { it as base } from './fixtures';
import type { JupyterServer, KernelSession } from './jupyter';
import { kernelReady, Lab, runCell } from './lab';
import { notebookOf } from './notebook-file';

/**
 * The kernel holds more from here to there, seconds after the start of the scenario; the cell has
 * to run by then.
 */
const PEAK_FROM_S = 15;
const PEAK_TO_S = 18;
const CELL_ENDS_S = 20;

const CODE = [
  'import time\nwhile time.time() < float(open("ends").read()):\n    time.sleep(0.05)',
  'import time\ntime.sleep(1)',
];

const it = base.extend('kernel', { auto: true }, async ({ scripted }) => {
  scripted.write('cells.ipynb', notebookOf(CODE));
  const kernel = await scripted.startKernel('cells.ipynb');
  await script(scripted, kernel, '8 GiB');
  return kernel;
});

/**
 * Has the kernel hold so much memory, by the seconds since then where it is more than one amount.
 */
async function script(
  jupyter: JupyterServer,
  kernel: KernelSession,
  memory: unknown,
  start_ms = Date.now(),
): Promise<void> {
  await jupyter.script(
    `start_ms = ${start_ms}\n[[gpu]]\nindex = 0\npower_watts = 500\nmemory_used = "50 GiB"\n` +
      `[[process]]\ngpu = 0\npid = ${kernel.pid}\nsm_percent = 50\nmemory = ${JSON.stringify(memory)}\n`,
  );
}

describe('the line below a cell', () => {
  let page: Page;

  const cell = (index: number): Locator => page.locator('.jp-CodeCell').nth(index);
  const cost = (index: number, what: string): Locator => cell(index).locator(`[data-cost=${what}]`);
  /** What a part of the line says, with plain spaces. */
  const said = async (index: number, what: string): Promise<string> =>
    (await cost(index, what).innerText()).replaceAll('\u00a0', ' ');

  /** Returns the readings in the notebook's toolbar and the status bar. */
  const readChips = async (): Promise<string[]> => {
    const chips = page.getByTestId('gpumon-chip').filter({ visible: true });
    return (await chips.allInnerTexts()).map((text) => text.replaceAll('\u00a0', ' '));
  };

  it.beforeEach(async ({ page: opened, scripted }) => {
    page = opened;
    await page.goto(`${scripted.page('lab/tree/cells.ipynb')}&reset`);
    await new Lab(page).ready();
    await kernelReady(page);
  });

  it('tells the scripted peak, while the cell runs and after it', async ({
    scripted,
    kernel,
    conduct,
  }) => {
    await expect.poll(readChips).toContainEqual(expect.stringContaining('8.00 GiB'));
    // The time of what follows counts from here, however long all has taken until now.
    const start_ms = Date.now();
    scripted.write('ends', String(start_ms / 1000 + CELL_ENDS_S));
    const memory = [
      [0, '10 GiB'],
      [PEAK_FROM_S, '10 GiB'],
      [PEAK_FROM_S, '42 GiB'],
      [PEAK_TO_S, '42 GiB'],
      [PEAK_TO_S, '12 GiB'],
    ];
    await script(scripted, kernel, memory, start_ms);
    await expect.poll(readChips).toContainEqual(expect.stringContaining('10.0 GiB'));
    await runCell(page);
    await cell(0).locator('[data-testid=gpumon-cell][data-running]').waitFor();
    await cell(0).locator('[data-testid=gpumon-cell]:not([data-running])').waitFor();
    expect(await said(0, 'peak')).toBe('peak 42.0 GiB (+2.00)');
    // What was drawn is 500 W, and half of the time kernels ran.
    const elapsed_s = parseFloat(await said(0, 'elapsed'));
    expect(elapsed_s).toBeGreaterThan(2);
    expect(parseFloat((await said(0, 'gpu')).slice('GPU '.length))).toBeCloseTo(elapsed_s / 2, 0);
    expect(parseFloat(await said(0, 'energy'))).toBeCloseTo(elapsed_s / 2, 0);
    expect(await cost(0, 'energy').getAttribute('title')).toBe(
      'Energy of GPU 0 while the cell ran',
    );
    // What it has now stands in its toolbar and in the status bar, and leads to all GPUs.
    await expect.poll(readChips).toEqual(Array.from({ length: 2 }, () => 'GPU 12.0 GiB 50 %'));
    await page.locator('#jp-main-statusbar').getByTestId('gpumon-chip').click();
    const card = page.locator('#gpumon-panel [data-gpu-index]');
    await card.waitFor();
    // What stands in the panel looks as it does without a notebook.
    const color = (text: Locator): Promise<string> =>
      text.evaluate((element) => getComputedStyle(element).color);
    await expect
      .poll(() => color(card.locator('[data-reading="utilization.gpu_percent"]')))
      .toBe(await color(card.locator('.gpumon-gpu-name')));
    // The charts of that GPU say which cell it was.
    await page.locator('#gpumon-panel').getByRole('button', { name: 'Open charts' }).click();
    const costs = page.getByTestId('gpumon-cells').locator('tbody tr').first();
    await expect.poll(() => costs.getByRole('button').isEnabled()).toBe(true);
    for (const text of ['import time', 'cells.ipynb', '42.0 GiB (+2.00)']) {
      await expect
        .poll(async () => (await costs.innerText()).replaceAll('\u00a0', ' '))
        .toContain(text);
    }
    // The page loaded anew still says it.
    await page.reload();
    await kernelReady(page);
    await expect.poll(() => said(0, 'peak')).toBe('peak 42.0 GiB (+2.00)');
    expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
  });

  it('is there for a cell that takes a second, and can be switched off', async () => {
    // Runs are followed once the parts of the notebook are loaded, which show its memory.
    await expect.poll(readChips).toContainEqual(expect.stringContaining('8.00 GiB'));
    await runCell(page, 1);
    await expect.poll(() => said(1, 'peak')).toBe('peak 8.00 GiB');
    await page.evaluate(async () => {
      const base = location.pathname.replace(/\/lab\/.*$/, '');
      const xsrf = /_xsrf=([^;]+)/.exec(document.cookie)?.[1] ?? '';
      await fetch(`${base}/lab/api/settings/gpumon:plugin`, {
        method: 'PUT',
        headers: { 'Content-Type': 'application/json', 'X-XSRFToken': xsrf },
        body: JSON.stringify({ raw: '{"cellLine": false}' }),
      });
    });
    await page.reload();
    await kernelReady(page);
    await runCell(page, 1);
    await page.waitForTimeout(3000);
    expect(await page.getByTestId('gpumon-cell').count()).toBe(0);
  });
});
