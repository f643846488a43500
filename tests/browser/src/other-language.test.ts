/** A notebook of another language than Python: nothing of gpumon is in its kernel, which is a program of its own. */

import { writeFileSync } from 'node:fs';
import path from 'node:path';

import { expect, it, onTestFinished, type TestContext } from 'vitest';

import { closePage, launchBrowser, newPage } from './browser';
import { JupyterServer } from './jupyter';
import { Lab, runCell } from './lab';
import { DENO, newFolder, overFake } from './machine';
import { notebookOf } from './notebook-file';
import { isRunning } from './processes';
import { View } from './view';

/** The kernel of the package `deno` on PyPI. */
const COMMAND = [DENO, 'jupyter', '--kernel', '--conn', '{connection_file}'];
const SPEC = { display_name: 'deno', language: 'typescript', name: 'deno' };
/** No Python would run this. */
const CODE = ['await new Promise((resolve) => setTimeout(resolve, 2500));\n`${typeof Deno} is done`'];

/** A text with plain spaces. */
function plain(text: string): string {
  return text.replaceAll('\u00a0', ' ');
}

it('a notebook of JavaScript is named in the panel, and told below its cell what that took', async ({
  task,
}: TestContext) => {
  const scenario = path.join(newFolder(), 'scenario.toml');
  const jupyter = await JupyterServer.start(overFake(scenario));
  onTestFinished(() => jupyter.stop());
  jupyter.addKernel(SPEC, COMMAND, { DENO_NO_UPDATE_CHECK: '1', DENO_DIR: newFolder() });
  jupyter.write('simulate.ipynb', notebookOf(CODE, SPEC));
  const kernel = await jupyter.startKernel('simulate.ipynb', SPEC.name);
  // Unlike ipykernel, it would outlive its server.
  onTestFinished(async () => {
    await jupyter.api('DELETE', `sessions/${kernel.id}`);
    await expect.poll(() => isRunning(kernel.pid)).toBe(false);
  });
  writeFileSync(
    scenario,
    '[[gpu]]\nindex = 0\nmemory_used = "9 GiB"\n' +
      `[[process]]\ngpu = 0\npid = ${String(kernel.pid)}\nmemory = "7 GiB"\nsm_percent = 40\n`,
  );
  const browser = await launchBrowser();
  onTestFinished(() => browser.close());
  const { page } = await newPage(browser);
  onTestFinished(() => closePage(page, task));
  const lab = new Lab(page);
  await lab.open(`${jupyter.page('lab/tree/simulate.ipynb')}&reset`);
  await lab.showPanel();
  await new View(page).live();

  const row = page.getByTestId('gpumon-notebook-table').locator(`[data-pid="${String(kernel.pid)}"]`);
  await row.filter({ hasText: 'simulate.ipynb' }).waitFor();
  await expect.poll(async () => plain(await row.innerText())).toContain('7.0 GiB');

  // Runs are heard from the moment on when the notebook has its chip.
  await page.locator('.jp-NotebookPanel-toolbar').getByTestId('gpumon-chip').waitFor();
  const cell = page.locator('.jp-CodeCell').first();
  await runCell(page);
  await cell.locator('.jp-OutputArea-output', { hasText: 'object is done' }).waitFor();
  await cell.locator('[data-testid=gpumon-cell]:not([data-running])').waitFor();
  const said = async (what: string): Promise<string> => plain(await cell.locator(`[data-cost=${what}]`).innerText());
  expect(await said('peak')).toMatch(/^peak 7\.0/);
  expect(parseFloat(await said('elapsed'))).toBeGreaterThan(2);
});
