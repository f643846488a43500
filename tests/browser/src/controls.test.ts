/** Tests that no control is cut off, leaves its container or overlaps another one, at any width. */

import { describe, expect } from 'vitest';

import { generateFleet } from '../../../static/src/testing/fleet';
import { Charts } from './charts';
import { findControlFaults } from './control-boxes';
import { FakeFleet } from './fake-fleet';
import { it } from './fixtures';
import { GpumonServer } from './gpumon';
import { View } from './view';

const WIDTHS = Array.from({ length: 168 }, (_, place) => 250 + 10 * place);
const HEIGHT = 900;

describe.for([1, 8, 16])('%i GPUs', (gpus) => {
  it.for(['', '#charts'])(
    'page "%s" shows complete controls',
    async (address, { page, onTestFinished }) => {
      const server = await GpumonServer.start({ GPUMON_SOURCE: `sim:${gpus}` });
      onTestFinished(() => server.stop());
      await page.goto(server.url + address);
      await (address === '' ? new View(page).waitUntilLive() : new Charts(page).waitUntilLive());
      expect(await findControlFaults(page, WIDTHS, HEIGHT)).toEqual([]);
    },
  );
});

it.for([
  [1, ''],
  [8, ''],
  [16, ''],
  [16, 'view=gpus'],
  [16, 'view=nodes'],
  [16, 'view=users'],
  [16, 'view=free'],
] as const)(
  'fleet controls are complete: %i GPUs at "%s"',
  async ([gpus, shown], { page, onTestFinished }) => {
    const nodes = Math.ceil(gpus / 8);
    const server = await FakeFleet.start(
      generateFleet({ nodes, gpus: gpus / nodes, at_ms: Date.now() }),
    );
    onTestFinished(() => server.stop());
    await page.goto(`${server.url}#fleet?${shown}`);
    await page.locator('[data-testid=gpumon-fleet][data-state=live]').waitFor();
    expect(await findControlFaults(page, WIDTHS, HEIGHT)).toEqual([]);
  },
);

it('controls check detects faulty controls', async ({ page, onTestFinished }) => {
  const server = await GpumonServer.start({ GPUMON_SOURCE: 'sim:1' });
  onTestFinished(() => server.stop());
  await page.goto(`${server.url}#charts`);
  await new Charts(page).waitUntilLive();
  await page.evaluate(() => {
    const made = (): HTMLElement => {
      const button = document.createElement('button');
      button.textContent = 'Test';
      button.style.position = 'absolute';
      button.style.width = '100px';
      document.querySelector('.gpumon-head')?.append(button);
      return button;
    };
    made().style.left = '850px';
    made().style.left = '800px';
    made().style.width = '10px';
  });
  const faults = await findControlFaults(page, [900, 1000], HEIGHT);
  expect(faults.map((fault) => fault.replace(/"Test" /g, ''))).toEqual(
    expect.arrayContaining([
      '900 px: button leaves div.gpumon-head',
      '900 px: button leaves the window',
      '900-1000 px: button overlaps button "Test"',
      '900-1000 px: button has more text than room',
    ]),
  );
});
