/** Tests of eight GPUs of a fake NVML library, on the page and in the panel. */

import { expect } from 'vitest';

import { closePage, newPage } from './browser';
import { eightGpus, HUNG, LOST } from './eight-gpus';
import { it } from './fixtures';
import { GpumonServer } from './gpumon';
import { newScenario, overFake } from './machine';
import { View } from './view';

const ALL = [0, 1, 2, 3, 4, 5, 6, 7];

/** Checks that a view shows the failures of the GPUs. */
async function watchThemFail(view: View, where: string): Promise<void> {
  await view.live();
  const healths = (): Promise<(string | null)[]> =>
    Promise.all(ALL.map((index) => view.health(index)));
  await expect.poll(healths, { message: where }).toEqual(ALL.map(() => 'ok'));
  expect(await view.indices(), where).toEqual(ALL);
  expect(await view.simulatedLabel.isVisible(), where).toBe(false);
  await view.changes(0, 'utilization.gpu_percent');

  const row = view.root.locator(`[data-pid="${process.pid}"]`);
  expect(await row.getAttribute('data-process-gpu'), where).toBe('0');
  await expect.poll(() => row.innerText(), { message: where }).toContain('12.0');

  const expected = ALL.map((index) => ({ [LOST]: 'lost', [HUNG]: 'hung' })[index] ?? 'ok');
  await expect.poll(healths, { message: where }).toEqual(expected);
  expect(await view.indices(), where).toEqual(ALL);
  await expect.poll(() => view.gpu(LOST).innerText(), { message: where }).toMatch(/lost \d/);
  await expect.poll(() => view.reading(LOST, 'power.draw_watts'), { message: where }).toBe('–');
  await expect.poll(() => view.gpu(HUNG).innerText(), { message: where }).toMatch(/not responding/);
  expect(await view.root.getAttribute('data-gpumon-state'), where).toBe('live');
  for (const index of [0, 4, 7]) {
    await view.changes(index, 'power.draw_watts');
  }
}

it('failing GPUs are shown among eight', async ({
  browser,
  scripted,
  lab,
  view,
  task,
  onTestFinished,
}) => {
  await lab.open(`${scripted.page('lab')}&reset`);
  await lab.showPanel();
  // Each collector starts its own scenario time.
  await scripted.script(eightGpus(process.pid));
  const server = await GpumonServer.start(overFake(newScenario(eightGpus(process.pid))));
  onTestFinished(() => server.stop());
  const { page, conduct } = await newPage(browser);
  onTestFinished(() => closePage(page, task));
  await page.goto(server.url);
  // Both views are checked at the same time, because the scenario continues meanwhile.
  await Promise.all([watchThemFail(new View(page), 'page'), watchThemFail(view, 'panel')]);
  expect(conduct).toEqual({ errors: [], foreignRequests: [] });
});
