/**
 * Tests of the line below cells, with a real kernel whose GPU memory is scripted by the fake
 * library.
 */

import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { it as base } from './fixtures';
import type { JupyterServer, KernelSession } from './jupyter';
import { waitForIdleKernel, Lab, runCell } from './lab';
import { notebookOf } from './notebook-file';

/**
 * The time at which the kernel starts to use more memory, in seconds after the start of the
 * scenario. The cell must be running by then.
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
  await simulateKernelMemory(scripted, kernel, '8 GiB');
  return kernel;
});

/**
 * Simulates the GPU memory of the kernel: `memory` is one size, or a list of sizes with their times
 * in seconds since `start_ms`.
 */
async function simulateKernelMemory(
  jupyter: JupyterServer,
  kernel: KernelSession,
  memory: unknown,
  start_ms = Date.now(),
): Promise<void> {
  await jupyter.restartWithScenario(
    `start_ms = ${start_ms}\n[[gpu]]\nindex = 0\npower_watts = 500\nmemory_used = "50 GiB"\n` +
      `tensor_percent = 60\n[[process]]\ngpu = 0\npid = ${kernel.pid}\nsm_percent = 80\nmemory = ${JSON.stringify(memory)}\n`,
  );
}

describe('line below a cell', () => {
  let page: Page;

  const cell = (index: number): Locator => page.locator('.jp-CodeCell').nth(index);
  const cost = (index: number, what: string): Locator => cell(index).locator(`[data-cost=${what}]`);
  /** Returns a part of the line below a cell, with ordinary spaces. */
  const said = async (index: number, what: string): Promise<string> =>
    (await cost(index, what).innerText()).replaceAll('\u00a0', ' ');

  /** Returns the texts of the GPU indicators in the notebook's toolbar and in the status bar. */
  const readChips = async (): Promise<string[]> => {
    const chips = page.getByTestId('gpumon-chip').filter({ visible: true });
    return (await chips.allInnerTexts()).map((text) => text.replaceAll('\u00a0', ' '));
  };

  it.beforeEach(async ({ page: opened, scripted }) => {
    page = opened;
    await page.goto(`${scripted.pageUrl('lab/tree/cells.ipynb')}&reset`);
    await new Lab(page).waitUntilReady();
    await waitForIdleKernel(page);
  });

  it('memory peak is shown during and after run', async ({ scripted, kernel, conduct }) => {
    await expect.poll(readChips).toContainEqual(expect.stringContaining('8.00 GiB'));
    // The time of the scenario starts here, no matter how long the previous steps took.
    const start_ms = Date.now();
    scripted.write('ends', String(start_ms / 1000 + CELL_ENDS_S));
    const memory = [
      [0, '10 GiB'],
      [PEAK_FROM_S, '10 GiB'],
      [PEAK_FROM_S, '42 GiB'],
      [PEAK_TO_S, '42 GiB'],
      [PEAK_TO_S, '12 GiB'],
    ];
    await simulateKernelMemory(scripted, kernel, memory, start_ms);
    await expect.poll(readChips).toContainEqual(expect.stringContaining('10.0 GiB'));
    await runCell(page);
    await cell(0).locator('[data-testid=gpumon-cell][data-running]').waitFor();
    await cell(0).locator('[data-testid=gpumon-cell]:not([data-running])').waitFor();
    expect(await said(0, 'peak')).toBe('peak 42.0 GiB (+2.00)');
    // The GPU is busy 80 % of the time. The power is 500 W, so the energy in kJ is half of the
    // elapsed time in seconds.
    const elapsed_s = parseFloat(await said(0, 'elapsed'));
    expect(elapsed_s).toBeGreaterThan(2);
    expect(parseFloat((await said(0, 'gpu')).slice('GPU '.length))).toBeCloseTo(elapsed_s * 0.8, 0);
    expect(parseFloat(await said(0, 'energy'))).toBeCloseTo(elapsed_s / 2, 0);
    expect(await cost(0, 'energy').getAttribute('title')).toBe(
      'Energy of GPU 0 while the cell ran',
    );
    // Tensor cores limit the GPU more than the 60 % of the time in which they are busy, because
    // large matrix products cannot keep them busy all the time.
    expect(await said(0, 'limit')).toMatch(/^tensor-bound 6\d %$/);
    const limitTitle = await cost(0, 'limit').getAttribute('title');
    expect(limitTitle).toMatch(/^What limited the cell on GPU 0: tensor-bound 6\d\s%, /);
    expect(limitTitle).toMatch(/^Tensor cores are busy 60\s% of the time\./m);
    // The indicators in the toolbar and the status bar show the current use. A click on an
    // indicator opens the panel with all GPUs.
    await expect.poll(readChips).toEqual(Array.from({ length: 2 }, () => 'GPU 12.0 GiB 80 %'));
    await page.locator('#jp-main-statusbar').getByTestId('gpumon-chip').click();
    const card = page.locator('#gpumon-panel [data-gpu-index]');
    await card.waitFor();
    // The notebook's style sheet must not change the colors in the panel.
    const color = (text: Locator): Promise<string> =>
      text.evaluate((element) => getComputedStyle(element).color);
    await expect
      .poll(() => color(card.locator('[data-reading="utilization.gpu_percent"]')))
      .toBe(await color(card.locator('.gpumon-gpu-name')));
    // The charts of the GPU must list the cell.
    await page.locator('#gpumon-panel').getByRole('button', { name: 'Open charts' }).click();
    const costs = page.getByTestId('gpumon-cells').locator('tbody tr').first();
    await expect.poll(() => costs.getByRole('button').isEnabled()).toBe(true);
    for (const text of ['import time', 'cells.ipynb', '42.0 GiB (+2.00)']) {
      await expect
        .poll(async () => (await costs.innerText()).replaceAll('\u00a0', ' '))
        .toContain(text);
    }
    // The line must still be there after the page is reloaded.
    await page.reload();
    await waitForIdleKernel(page);
    await expect.poll(() => said(0, 'peak')).toBe('peak 42.0 GiB (+2.00)');
    expect(await said(0, 'limit')).toMatch(/^tensor-bound 6\d %$/);
    expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
  });

  it('one-second cell has cost line unless disabled', async () => {
    // Runs are observed only after the notebook features have been loaded, so the test waits until
    // the indicator shows the memory.
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
    await waitForIdleKernel(page);
    await runCell(page, 1);
    await page.waitForTimeout(3000);
    expect(await page.getByTestId('gpumon-cell').count()).toBe(0);
  });
});
