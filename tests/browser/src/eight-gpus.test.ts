/** Eight GPUs, read through a library with NVML's interface, on the page and in the panel. */

import { expect } from 'vitest';

import { closePage, newPage } from './browser';
import { eightGpus, HUNG, LOST } from './eight-gpus';
import { it } from './fixtures';
import { GpumonServer } from './gpumon';
import { newScenario, overFake } from './machine';
import { View } from './view';

const ALL = [0, 1, 2, 3, 4, 5, 6, 7];

/** What has to be seen wherever these GPUs are shown. */
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

it('eight GPUs, of which one is lost and one hangs, are all on the page and in the panel, and the others go on', async ({
  browser,
  scripted,
  lab,
  view,
  task,
  onTestFinished,
}) => {
  await lab.open(`${scripted.page('lab')}&reset`);
  await lab.showPanel();
  // The time of each begins with its collector.
  await scripted.script(eightGpus(process.pid));
  const server = await GpumonServer.start(overFake(newScenario(eightGpus(process.pid))));
  onTestFinished(() => server.stop());
  const { page, conduct } = await newPage(browser);
  onTestFinished(() => closePage(page, task));
  await page.goto(server.url);
  // The same time passes for both.
  await Promise.all([watchThemFail(new View(page), 'page'), watchThemFail(view, 'panel')]);
  expect(conduct).toEqual({ errors: [], foreignRequests: [] });
});
