/**
 * Tests of an extension that a user has disabled on the command line. Disabling it in the extension
 * manager has the same effect.
 */

import { spawnSync } from 'node:child_process';
import path from 'node:path';

import { expect } from 'vitest';

import { it } from './fixtures';
import { JupyterServer } from './jupyter';
import { waitForIdleKernel, runCell } from './lab';
import { makeEnvironment, newFolder, VENV } from './machine';
import { notebookOf } from './notebook-file';

it('disabled extension does not start gpumon', async ({ page, lab, onTestFinished }) => {
  const folder = newFolder();
  const disable = ['labextension', 'disable', '--level=user', 'gpumon'];
  const env = makeEnvironment({ JUPYTER_CONFIG_DIR: path.join(folder, 'config') });
  expect(
    spawnSync(path.join(VENV, 'bin/jupyter'), disable, { env, encoding: 'utf8' }),
  ).toMatchObject({ status: 0 });
  const jupyter = await JupyterServer.start({ GPUMON_SOURCE: 'sim' }, {}, folder);
  onTestFinished(() => jupyter.stop());
  jupyter.write('cells.ipynb', notebookOf(['print("done")']));
  for (const application of ['lab/tree', 'notebooks']) {
    await page.goto(jupyter.pageUrl(`${application}/cells.ipynb`));
    await waitForIdleKernel(page);
    await runCell(page);
    await page.locator('.jp-OutputArea-output', { hasText: 'done' }).waitFor();
    expect(await lab.panel.count()).toBe(0);
    expect(jupyter.gpumonPids).toEqual([]);
  }
});
