/** Tests of a notebook in a language other than Python, whose kernel contains no code of gpumon. */

import { expect } from 'vitest';

import { it } from './fixtures';
import { runCell } from './lab';
import { DENO, newFolder } from './machine';
import { notebookOf } from './notebook-file';
import { isRunning } from './processes';

/** The command that starts the kernel. It is in the PyPI package `deno`. */
const COMMAND = [DENO, 'jupyter', '--kernel', '--conn', '{connection_file}'];
const SPEC = { display_name: 'deno', language: 'typescript', name: 'deno' };
/** The code of a cell. It is not valid Python. */
const CODE = [
  'await new Promise((resolve) => setTimeout(resolve, 2500));\n`${typeof Deno} is done`',
];

/** Replaces no-break spaces. */
function replaceNoBreakSpaces(text: string): string {
  return text.replaceAll('\u00a0', ' ');
}

it('JavaScript notebook is listed and has cell line', async ({
  scripted,
  page,
  lab,
  view,
  onTestFinished,
}) => {
  scripted.addKernel(SPEC, COMMAND, { DENO_NO_UPDATE_CHECK: '1', DENO_DIR: newFolder() });
  scripted.write('simulate.ipynb', notebookOf(CODE, SPEC));
  const kernel = await scripted.startKernel('simulate.ipynb', SPEC.name);
  // This kernel would keep running after its server has ended, unlike ipykernel, so it is shut
  // down.
  onTestFinished(async () => {
    await scripted.requestApi('DELETE', `sessions/${kernel.id}`);
    await expect.poll(() => isRunning(kernel.pid)).toBe(false);
  });
  await scripted.restartWithScenario(
    '[[gpu]]\nindex = 0\nmemory_used = "9 GiB"\n' +
      `[[process]]\ngpu = 0\npid = ${kernel.pid}\nmemory = "7 GiB"\nsm_percent = 40\n`,
  );
  await lab.open(`${scripted.pageUrl('lab/tree/simulate.ipynb')}&reset`);
  await lab.showPanel();
  await view.waitUntilLive();

  const row = page.getByTestId('gpumon-notebook-table').locator(`[data-pid="${kernel.pid}"]`);
  await row.filter({ hasText: 'simulate.ipynb' }).waitFor();
  await expect.poll(async () => replaceNoBreakSpaces(await row.innerText())).toContain('7.0 GiB');

  // Executions are observed only after the notebook's toolbar shows the GPU indicator, so the test
  // waits for it.
  await page.locator('.jp-NotebookPanel-toolbar').getByTestId('gpumon-chip').waitFor();
  const cell = page.locator('.jp-CodeCell').first();
  await runCell(page);
  await cell.locator('.jp-OutputArea-output', { hasText: 'object is done' }).waitFor();
  await cell.locator('[data-testid=gpumon-cell]:not([data-running])').waitFor();
  const said = async (what: string): Promise<string> =>
    replaceNoBreakSpaces(await cell.locator(`[data-cost=${what}]`).innerText());
  expect(await said('peak')).toMatch(/^peak 7\.0/);
  expect(parseFloat(await said('elapsed'))).toBeGreaterThan(2);
});
