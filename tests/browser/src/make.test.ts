/** Tests of `make`, which starts JupyterLab with an open panel and prints two URLs. */

import path from 'node:path';

import { expect } from 'vitest';

import { closePage, newPage } from './browser';
import { it } from './fixtures';
import { makeEnvironment, newFolder, PYTHON, ROOT, VENV } from './machine';
import { listGpumonPids, isRunning } from './processes';
import { Program } from './program';
import { View } from './view';

it('make command opens panel and ends at Ctrl-C', async ({
  browser,
  lab,
  view,
  task,
  onTestFinished,
}) => {
  // The library that is set here does not exist, so the machine appears to have no GPUs.
  const program = new Program(
    PYTHON,
    [path.join(ROOT, 'tools/lab.py'), VENV, newFolder()],
    makeEnvironment({ GPUMON_NVML_LIB: '/nonexistent/libnvidia-ml.so.1', PYTHONUNBUFFERED: '1' }),
  );
  onTestFinished(async () => {
    await program.stop();
  });
  await program.waitFor('end of its messages', () =>
    program.output.includes('Press Ctrl-C') ? true : null,
  );
  expect(program.output).toMatch(
    /\/nonexistent\/libnvidia-ml\.so\.1.*\nThere are no GPUs to read, so the values are SIMULATED/,
  );
  const [labUrl = '', pageUrl = ''] = program.output.match(/http:\S+/g) ?? [];
  expect(labUrl).toContain('/lab?token=');

  await lab.open(labUrl);
  await view.waitUntilLive();
  expect(await lab.panel.isVisible()).toBe(true);
  await view.simulatedLabel.waitFor();

  // The standalone page is opened in a new browser context, as if by a new user.
  const other = await newPage(browser);
  onTestFinished(() => closePage(other.page, task));
  await other.page.goto(pageUrl);
  await new View(other.page).waitUntilLive();
  expect(other.conduct).toEqual({ errors: [], foreignRequests: [] });

  const gpumons = listGpumonPids(program.pid);
  expect(gpumons).toHaveLength(2);
  expect(await program.stop('SIGINT')).toBe(0);
  await expect.poll(() => gpumons.filter(isRunning)).toEqual([]);
  await expect(fetch(pageUrl)).rejects.toThrow();
});
