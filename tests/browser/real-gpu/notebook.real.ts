/**
 * Tests of a notebook's cells on a real GPU. The line below each cell is compared with the
 * measurements of the framework and the GPU's own counter.
 *
 * npm run real-gpu --workspace tests/browser
 *
 * The tests need an NVIDIA driver, and PyTorch or CuPy and nvidia-ml-py in the tests' Jupyter
 * environment.
 */

import { execFileSync } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import path from 'node:path';

import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { closePage, launchBrowser, newPage, type PageProblems } from '../src/browser';
import { JupyterServer } from '../src/jupyter';
import { Lab } from '../src/lab';
import { PYTHON, ROOT } from '../src/machine';
import { notebookOf } from '../src/notebook-file';
import { FAILING_FRAMEWORKS, FRAMEWORKS } from './kernels';

const MAX_PEAK_ERROR = 0.02;
const MAX_ENERGY_ERROR = 0.03;
/** The directory of screenshots for manual inspection. */
const PICTURES = path.join(ROOT, 'target/real-gpu');

const UNITS: Readonly<Record<string, number>> = { J: 1, kJ: 1e3, MiB: 1024 ** 2, GiB: 1024 ** 3 };

const hasModule = (name: string): boolean => {
  try {
    execFileSync(PYTHON, ['-c', `import ${name}, pynvml`], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

describe('notebook on a real GPU', () => {
  let browser: Browser;
  let jupyter: JupyterServer;
  let page: Page;
  let conduct: PageProblems;

  const cell = (index: number): Locator => page.locator('.jp-CodeCell').nth(index);
  const open = async (name: string, cells: readonly string[]): Promise<void> => {
    jupyter.write(name, notebookOf(cells));
    await page.goto(`${jupyter.pageUrl(`lab/tree/${name}`)}&reset`);
    await new Lab(page).waitUntilReady();
    await page.locator('.jp-Notebook-ExecutionIndicator[data-status=idle]').waitFor();
  };
  /**
   * Runs a cell. The key press is repeated, because a page ignores keys while it is still starting.
   */
  const run = async (index: number): Promise<void> => {
    const prompt = cell(index).locator('.jp-InputPrompt');
    const started = async (): Promise<boolean> => {
      await cell(index).locator('.cm-content').click();
      await page.keyboard.press('Control+Enter');
      await page.waitForTimeout(500);
      return /\[[*\d]/.test(await prompt.innerText());
    };
    await expect.poll(started, { message: 'the cell does not run' }).toBe(true);
  };
  /** Runs a cell, and returns the values that it printed. */
  const measured = async (index: number): Promise<Record<string, number>> => {
    await run(index);
    const output = cell(index).locator('.jp-OutputArea-output', { hasText: '{' });
    await output.waitFor();
    return JSON.parse((await output.innerText()).trim()) as Record<string, number>;
  };
  /**
   * Waits until the line below a cell no longer changes, and returns a part of it in bytes or
   * joules.
   */
  const shown = async (index: number, what: 'peak' | 'energy'): Promise<number> => {
    await cell(index).locator('[data-testid=gpumon-cell]:not([data-running])').waitFor();
    // The driver's records of the last two seconds arrive late, so the test waits for them.
    await page.waitForTimeout(4000);
    const text = (await cell(index).locator(`[data-cost=${what}]`).innerText()).replaceAll(
      '\u00a0',
      ' ',
    );
    const [, value = '', unit = ''] = /([\d.]+) (\w+)/.exec(text) ?? [];
    return Number(value) * (UNITS[unit] ?? NaN);
  };
  const picture = async (name: string): Promise<void> => {
    await page.screenshot({ path: path.join(PICTURES, `${name}.png`) });
  };

  beforeAll(async () => {
    mkdirSync(PICTURES, { recursive: true });
    browser = await launchBrowser();
    jupyter = await JupyterServer.start({ GPUMON_SOURCE: 'nvml' });
    // The first request starts gpumon.
    await fetch(jupyter.pageUrl('gpumon/healthz'));
  });
  beforeEach(async () => {
    ({ page, conduct } = await newPage(browser));
  });
  afterEach(async ({ task }) => {
    expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
    await closePage(page, task);
  });
  afterAll(async () => {
    await browser.close();
    await jupyter.stop();
  });

  for (const { name, module, begin, peak, energy, tooMuch } of FRAMEWORKS) {
    it.skipIf(!hasModule(module))(`cell shows peak and energy with ${name}`, async () => {
      await open(`${name}.ipynb`, [begin, peak, energy, tooMuch]);
      const { context = NaN } = await measured(0);
      const { peak: own_bytes = NaN } = await measured(1);
      const peak_bytes = await shown(1, 'peak');
      const { joules = NaN } = await measured(2);
      const shown_joules = await shown(2, 'energy');
      const off = (is: number, should: number): number => is / should - 1;
      const percent = (share: number): string => `${(100 * share).toFixed(2)} %`;
      console.log(
        `  ${name}: peak ${peak_bytes} B for ${own_bytes} B (context ${context} B), ` +
          `${percent(off(peak_bytes, own_bytes))}; energy ${shown_joules} J for ${joules} J, ` +
          percent(off(shown_joules, joules)),
      );
      await run(3);
      const note = page.getByTestId('gpumon-oom');
      await note.waitFor();
      console.log(`  ${(await note.innerText()).replaceAll(/\s+/g, ' ')}`);
      await page.getByTestId('gpumon-chip').first().waitFor();
      await picture(name);
      expect(Math.abs(off(peak_bytes, own_bytes))).toBeLessThanOrEqual(MAX_PEAK_ERROR);
      expect(Math.abs(off(shown_joules, joules))).toBeLessThanOrEqual(MAX_ENERGY_ERROR);
      expect(await note.innerText()).toContain(`${name} requested 500`);
    });
  }

  for (const { name, module, code } of FAILING_FRAMEWORKS) {
    it.skipIf(!hasModule(module))(`error of ${name} is explained`, async () => {
      await open(`${name}.ipynb`, [code]);
      await run(0);
      const note = page.getByTestId('gpumon-oom');
      await note.waitFor();
      console.log(`  ${(await note.innerText()).replaceAll(/\s+/g, ' ')}`);
      await picture(name);
      expect(await note.innerText()).toContain(name);
    });
  }
});
