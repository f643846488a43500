/** Tests of the costs that a notebook stores in its file and shows when it is opened again. */

import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { crc32 } from 'node:zlib';

import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { contrastOf } from './contrast';
import { it as base } from './fixtures';
import type { JupyterServer, KernelSession } from './jupyter';
import { waitForIdleKernel, Lab, runCell } from './lab';
import { PYTHON } from './machine';
import { notebookOf } from './notebook-file';

const NAME = 'stored.ipynb';
const CODE = ['import time\ntime.sleep(1.5)', 'print("done")', 'print("again")'];
const STORE_COMMAND = 'Store GPU Cost of Cells in the Notebook';
const REMOVE_COMMAND = 'Remove Stored GPU Costs';
const STORED_COST = {
  version: 1,
  duration_s: 13.1,
  gpu_s: 9.81,
  peak_memory_bytes: 61 * 2 ** 30,
  memory_change_bytes: 2 ** 33,
  energy_joules: 6400,
  shared: false,
  gpus: ['<img src=x onerror=alert(1)> H200'],
  run: {
    source_crc32: crc32(CODE[0] ?? ''),
    execution_count: null as number | null,
    started: null,
  },
};

interface FileCell {
  metadata: { gpumon?: typeof STORED_COST };
  source: string[] | string;
  execution_count: number | null;
}

const it = base.extend('kernel', { auto: true }, async ({ scripted }) => {
  scripted.write(NAME, notebookOf(CODE));
  const kernel = await scripted.startKernel(NAME);
  await scriptKernelMemory(scripted, kernel);
  return kernel;
});

async function scriptKernelMemory(jupyter: JupyterServer, kernel: KernelSession): Promise<void> {
  await jupyter.restartWithScenario(
    `[[gpu]]\nindex = 0\npower_watts = 500\nmemory_used = "50 GiB"\n` +
      `[[process]]\ngpu = 0\npid = ${kernel.pid}\nsm_percent = 50\nmemory = "8 GiB"\n`,
  );
}

/** Returns a notebook whose cells contain these stored costs. */
function makeNotebookWithCosts(...stored: unknown[]): string {
  const notebook = JSON.parse(notebookOf(CODE)) as { cells: { metadata: object }[] };
  notebook.cells.forEach(
    (cell, index) => (cell.metadata = { gpumon: stored[index] ?? STORED_COST }),
  );
  return JSON.stringify(notebook);
}

function cellsIn(file: string): FileCell[] {
  return (JSON.parse(file) as { cells: FileCell[] }).cells;
}

/** Returns the lines of a file that another file does not contain. */
function linesMissingIn(file: string, other: string): string[] {
  const known = new Set(other.split('\n'));
  return file.split('\n').filter((line) => !known.has(line));
}

describe('stored cell costs', () => {
  let page: Page;
  let lab: Lab;

  const cell = (index: number): Locator => page.locator('.jp-CodeCell').nth(index);
  const line = (index: number): Locator => cell(index).getByTestId('gpumon-cell');
  /**
   * Returns the text of the line below a cell, with ordinary spaces. The text is empty if there is
   * no line.
   */
  const said = async (index: number): Promise<string> =>
    (await line(index).allInnerTexts()).join('').replaceAll(/\s+/g, ' ').trim();
  /** The notebook's tab, which only matches if the notebook has unsaved changes. */
  const dirty = (): Locator => page.locator('[data-type=document-title].jp-mod-dirty');
  const open = async (jupyter: JupyterServer): Promise<void> => {
    await page.goto(`${jupyter.pageUrl(`lab/tree/${NAME}`)}&reset`);
    await lab.waitUntilReady();
    await waitForIdleKernel(page);
  };
  /** Saves the notebook, and returns the content of its file. */
  const save = async (jupyter: JupyterServer): Promise<string> => {
    const changes = async (): Promise<number> => {
      await cell(0).locator('.jp-InputPrompt').click();
      await page.keyboard.press('Control+s');
      return dirty().count();
    };
    // A busy page ignores keys, so the key press is repeated.
    await expect.poll(changes, { interval: 500 }).toBe(0);
    // Jupyter empties the file before it writes the new content, so the file is read until it is
    // complete.
    let file = '';
    const written = (): boolean =>
      (file = readFileSync(jupyter.pathOf(NAME), 'utf8')).trimEnd().endsWith('}');
    await expect.poll(written).toBe(true);
    return file;
  };
  /** Runs the first cell, and returns the file once it contains the duration of this run. */
  const runAndSave = async (
    jupyter: JupyterServer,
    isOwn: (duration_s: number) => boolean,
  ): Promise<string> => {
    await runCell(page);
    await line(0).and(page.locator('[data-running]')).waitFor();
    let file = '';
    const isStored = async (): Promise<boolean> => {
      file = await save(jupyter);
      return isOwn(cellsIn(file)[0]?.metadata.gpumon?.duration_s ?? NaN);
    };
    await expect.poll(isStored).toBe(true);
    return file;
  };

  it.beforeEach(({ page: opened }) => {
    page = opened;
    lab = new Lab(page);
  });

  it('command enables storing costs in the notebook', async ({ scripted, conduct }) => {
    await open(scripted);
    await lab.runCommand(STORE_COMMAND);
    const first = await runAndSave(scripted, (duration_s) => duration_s > 0);
    const [stored] = cellsIn(first);
    expect(stored?.metadata.gpumon).toEqual({
      version: 1,
      duration_s: expect.closeTo(1.6, 0) as number,
      gpu_s: expect.closeTo(0.8, 0) as number,
      peak_memory_bytes: 8 * 2 ** 30,
      memory_change_bytes: 0,
      energy_joules: expect.closeTo(800, -3) as number,
      shared: false,
      gpus: ['NVIDIA H200'],
      run: {
        source_crc32: crc32([stored?.source ?? []].flat().join('')),
        execution_count: stored?.execution_count,
        started: null,
      },
    });
    const validate = `import nbformat, sys; nbformat.validate(nbformat.read(sys.argv[1], as_version=4))`;
    const checked = spawnSync(PYTHON, ['-W', 'error', '-c', validate, scripted.pathOf(NAME)], {
      encoding: 'utf8',
    });
    expect(checked).toMatchObject({ status: 0, stderr: '' });

    // Storing the cost of a run must not affect Undo: text that was typed before the run can still
    // be undone.
    await cell(0).locator('.cm-content').click();
    await page.keyboard.press('Control+End');
    await page.keyboard.type('; time.sleep(1)');
    const second = await runAndSave(scripted, (duration_s) => duration_s >= 2.5);
    expect(cellsIn(second)[0]?.source).not.toEqual(stored?.source);
    const undo = async (): Promise<string> => {
      await cell(0).locator('.cm-content').click();
      await page.keyboard.press('Control+z');
      return cell(0).locator('.cm-content').innerText();
    };
    await expect.poll(undo).not.toContain(';');
    let undone = '';
    const saved = async (): Promise<FileCell | undefined> =>
      cellsIn((undone = await save(scripted)))[0];
    await expect.poll(saved).toEqual({ ...cellsIn(second)[0], source: stored?.source });
    for (const changed of linesMissingIn(undone, first)) {
      expect(changed).toMatch(/"(duration_s|gpu_s|energy_joules|execution_count|source_crc32)": /);
    }

    // The storing of costs is disabled again, and the stored costs are removed.
    await lab.runCommand(STORE_COMMAND);
    await lab.runCommand(REMOVE_COMMAND);
    await expect
      .poll(async () => cellsIn(await save(scripted))[0]?.metadata.gpumon)
      .toBeUndefined();
    await runCell(page);
    await expect.poll(() => said(0)).toMatch(/^1\.\d+ s GPU/);
    await page.waitForTimeout(3000);
    expect(cellsIn(await save(scripted))[0]?.metadata).not.toHaveProperty('gpumon');
    expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
  });

  it('stored costs are shown without a server', async ({ scripted, conduct }) => {
    // The stored cost of the second cell was measured with other source code.
    scripted.write(
      NAME,
      makeNotebookWithCosts(STORED_COST, STORED_COST, { ...STORED_COST, version: 2 }),
    );
    // JupyterLab changes the notebook file when the notebook's first kernel starts, so the file is
    // saved once.
    await open(scripted);
    await save(scripted);
    await page.routeWebSocket(/\/gpumon\//, (socket) => socket.close());
    await page.route(/\/gpumon\/(api|healthz)/, (route) => route.abort());
    for (const application of ['notebooks', 'lab/tree']) {
      await page.goto(scripted.pageUrl(`${application}/${NAME}`));
      await waitForIdleKernel(page);
      await line(0).and(page.locator('[data-stored]')).waitFor();
      expect(await said(0)).toBe('13.1 s GPU 9.81 s peak 61.0 GiB (+8.00) 6.40 kJ stored');
      expect(await said(1)).toBe(
        '13.1 s GPU 9.81 s peak 61.0 GiB (+8.00) 6.40 kJ stored, earlier run',
      );
      for (const [index, run] of ['Last run', 'Earlier run'].entries()) {
        const label = line(index).locator('.gpumon-cell-stored');
        const title = `${run} on <img src=x onerror=alert(1)> H200, stored in the notebook`;
        expect(await label.getAttribute('title')).toBe(title);
      }
      expect(await line(2).count()).toBe(0);
    }
    expect(await dirty().count()).toBe(0);
    expect(conduct.errors.filter((error) => error.includes('alert'))).toEqual([]);
  });

  it('stored cost is compared, then removed', async ({ scripted }) => {
    await scripted.setSettings({ storeCosts: true });
    scripted.write(NAME, makeNotebookWithCosts());
    await open(scripted);
    await line(0).and(page.locator('[data-stored]')).waitFor();
    await runAndSave(scripted, (duration_s) => duration_s < 10);
    expect(await said(0)).toMatch(
      /^1\.\d+ s was 13\.1 s GPU \S+ m?s was 9\.81 s peak 8\.00 GiB was 61\.0 GiB \S+ J was 6\.40 kJ$/,
    );
    expect(await contrastOf(line(0).locator('.gpumon-cell-was').first())).toBeGreaterThan(4.5);
    // In this scenario, the kernel uses no GPU memory, so the next run has no cost.
    await scripted.restartWithScenario('gpus = 1\n');
    await page.waitForTimeout(3000);
    await runCell(page);
    await expect.poll(async () => cellsIn(await save(scripted))[0]?.metadata).toEqual({});
    expect(await line(0).count()).toBe(0);
  });
});
