/**
 * Tests of the button that loads cudf.pandas and cuml.accel. The kernels are real; the modules are
 * fakes with the same names next to the notebook.
 */

import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { it } from './fixtures';
import { waitForIdleKernel, Lab, runCell } from './lab';
import { notebookOf } from './notebook-file';

const EXTENSION =
  'def load_ipython_extension(ipython):\n    ipython.user_ns.setdefault("order", []).append(__name__)\n';
const BROKEN_EXTENSION =
  'def load_ipython_extension(ipython):\n    raise RuntimeError("no CUDA device")\n';
const PRINT_LOADED_CODE = `import sys\nprint("loaded", globals().get("order"), [name for name in ("cudf", "cuml") if name in sys.modules])`;
const NAMES = 'print("names", sorted(name for name in set(globals()) - before if name[0] != "_"))';

describe('accelerators of a notebook', () => {
  let page: Page;

  const button = (): Locator => page.getByTestId('gpumon-accelerate').filter({ visible: true });
  const cell = (index: number): Locator => page.locator('.jp-CodeCell').nth(index);
  const prompt = async (index: number): Promise<string> =>
    cell(index).locator('.jp-InputPrompt').innerText();
  /** Runs a cell, and returns its output when it has ended. */
  const run = async (index: number): Promise<string> => {
    await runCell(page, index);
    await expect.poll(() => prompt(index)).toMatch(/\d/);
    return cell(index).locator('.jp-OutputArea').innerText();
  };
  const open = async (url: string): Promise<void> => {
    await page.goto(`${url}&reset`);
    await new Lab(page).waitUntilReady();
    await waitForIdleKernel(page);
  };

  it.beforeEach(({ page: opened, simulated }) => {
    page = opened;
    for (const [folder, second] of [
      ['both', EXTENSION],
      ['late', EXTENSION],
      ['broken', BROKEN_EXTENSION],
    ] as const) {
      simulated.write(`${folder}/cudf/__init__.py`, '');
      simulated.write(`${folder}/cudf/pandas.py`, EXTENSION);
      simulated.write(`${folder}/cuml/__init__.py`, '');
      simulated.write(`${folder}/cuml/accel.py`, second);
      simulated.write(`${folder}/pandas.py`, '');
    }
    simulated.write(
      'both/a.ipynb',
      notebookOf(['before = set(globals())', PRINT_LOADED_CODE, NAMES]),
    );
    simulated.write('late/a.ipynb', notebookOf(['import pandas', PRINT_LOADED_CODE]));
    simulated.write('broken/a.ipynb', notebookOf([PRINT_LOADED_CODE]));
    // In this folder, `cudf` is a plain module. Therefore `cudf.pandas` does not exist, although a
    // module named `pandas` does. No accelerator may be offered.
    simulated.write('none/cudf.py', '');
    simulated.write('none/pandas.py', '');
    simulated.write('none/a.ipynb', notebookOf([PRINT_LOADED_CODE]));
  });

  it('loading accelerators leaves variables and prompt number unchanged', async ({
    simulated,
    conduct,
  }) => {
    await open(simulated.pageUrl('lab/tree/both/a.ipynb'));
    await button().waitFor();
    await run(0);
    expect(await run(1)).toContain('loaded None []');
    await button().click();
    await page.locator('[data-testid=gpumon-accelerate][aria-pressed=true]').waitFor();
    await expect.poll(() => button().innerText()).toBe('Accelerated');
    expect(await run(1)).toContain("loaded ['cudf.pandas', 'cuml.accel'] ['cudf', 'cuml']");
    expect(await prompt(1)).toBe('[3]:');
    expect(await run(2)).toContain("names ['before', 'order', 'sys']");
    expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
  });

  it('loaded pandas requires a kernel restart', async ({ simulated }) => {
    await open(simulated.pageUrl('lab/tree/late/a.ipynb'));
    await button().waitFor();
    await run(0);
    await button().click();
    const dialog = page.locator('.jp-Dialog', {
      hasText: 'cudf.pandas must be loaded before pandas is imported',
    });
    await dialog.locator('button', { hasText: 'Restart and Load' }).click();
    await page.locator('[data-testid=gpumon-accelerate][aria-pressed=true]').waitFor();
    expect(await run(1)).toContain("loaded ['cudf.pandas', 'cuml.accel']");
    expect(await prompt(1)).toBe('[1]:');
  });

  it('failure is reported in Notebook 7', async ({ simulated }) => {
    await page.goto(simulated.pageUrl('notebooks/broken/a.ipynb'));
    await button().click();
    const dialog = page.locator('.jp-Dialog', { hasText: 'Not all accelerators could be loaded' });
    await dialog.waitFor();
    expect(await dialog.innerText()).toContain('cuml.accel: RuntimeError: no CUDA device');
    expect(await dialog.innerText()).not.toContain('cudf.pandas');
  });

  it('missing or disabled accelerators are not offered', async ({ simulated }) => {
    // The test expects that no button appears, so the button cannot indicate that the kernel is
    // ready. Therefore the kernel is started before the page is opened.
    await simulated.startKernel('none/a.ipynb');
    await open(simulated.pageUrl('lab/tree/none/a.ipynb'));
    expect(await run(0)).toContain('loaded None []');
    expect(await button().count()).toBe(0);
    await simulated.setSettings({ accelerators: false });
    await open(simulated.pageUrl('lab/tree/both/a.ipynb'));
    await run(1);
    expect(await page.getByTestId('gpumon-accelerate').count()).toBe(0);
  });
});
