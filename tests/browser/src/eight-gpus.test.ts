/** Tests of the page and the panel with eight GPUs of a fake NVML library. */

import { expect } from 'vitest';

import { closePage, newPage } from './browser';
import { makeEightGpuScenario, HUNG_GPU, LOST_GPU } from './eight-gpus';
import { it } from './fixtures';
import { GpumonServer } from './gpumon';
import { newScenario, makeFakeEnvironment } from './machine';
import { View } from './view';

const ALL_GPUS = [0, 1, 2, 3, 4, 5, 6, 7];

/** Checks that a view shows the failures of the GPUs. */
async function expectFailures(view: View, where: string): Promise<void> {
  await view.waitUntilLive();
  const healths = (): Promise<(string | null)[]> =>
    Promise.all(ALL_GPUS.map((index) => view.readHealth(index)));
  await expect.poll(healths, { message: where }).toEqual(ALL_GPUS.map(() => 'ok'));
  expect(await view.gpuIndexes(), where).toEqual(ALL_GPUS);
  expect(await view.simulatedLabel.isVisible(), where).toBe(false);
  await view.waitForChange(0, 'utilization.gpu_percent');

  const row = view.root.locator(`[data-pid="${process.pid}"]`);
  expect(await row.getAttribute('data-process-gpu'), where).toBe('0');
  await expect.poll(() => row.innerText(), { message: where }).toContain('12.0');

  const expected = ALL_GPUS.map(
    (index) => ({ [LOST_GPU]: 'lost', [HUNG_GPU]: 'hung' })[index] ?? 'ok',
  );
  await expect.poll(healths, { message: where }).toEqual(expected);
  expect(await view.gpuIndexes(), where).toEqual(ALL_GPUS);
  await expect
    .poll(() => view.findCard(LOST_GPU).innerText(), { message: where })
    .toMatch(/lost \d/);
  await expect
    .poll(() => view.readValue(LOST_GPU, 'power.draw_watts'), { message: where })
    .toBe('–');
  await expect
    .poll(() => view.findCard(HUNG_GPU).innerText(), { message: where })
    .toMatch(/not responding/);
  expect(await view.root.getAttribute('data-gpumon-state'), where).toBe('live');
  for (const index of [0, 4, 7]) {
    await view.waitForChange(index, 'power.draw_watts');
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
  await lab.open(`${scripted.pageUrl('lab')}&reset`);
  await lab.showPanel();
  // The time of the scenario starts when a collector starts. Therefore both collectors are started
  // at about the same time.
  await scripted.restartWithScenario(makeEightGpuScenario(process.pid));
  const server = await GpumonServer.start(
    makeFakeEnvironment(newScenario(makeEightGpuScenario(process.pid))),
  );
  onTestFinished(() => server.stop());
  const { page, conduct } = await newPage(browser);
  onTestFinished(() => closePage(page, task));
  await page.goto(server.url);
  // Both views are checked at the same time, because the scenario continues meanwhile.
  await Promise.all([expectFailures(new View(page), 'page'), expectFailures(view, 'panel')]);
  expect(conduct).toEqual({ errors: [], foreignRequests: [] });
});
