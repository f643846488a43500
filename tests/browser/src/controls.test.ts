/** Tests that no control is cut off, leaves its container or overlaps another one, at any width. */

import { expect } from 'vitest';

import { generateFleet } from '../../../static/src/testing/fleet';
import { findControlFaults, openForMeasuring } from './control-boxes';
import { FakeFleet } from './fake-fleet';
import { it } from './fixtures';
import { GpumonServer } from './gpumon';

const WIDTHS = Array.from({ length: 168 }, (_, place) => 250 + 10 * place);
const HEIGHT_PX = 900;
const LIVE_CARD = '[data-testid=gpumon][data-gpumon-state=live] [data-gpu-index]';
const LIVE_CHART = '[data-testid=gpumon-dashboard][data-gpumon-state=live] [data-plot] canvas';

// The tests mostly wait for the browser's next frame, so they run concurrently.

it.concurrent.for([
  [1, ''],
  [8, ''],
  [16, ''],
  [1, '#charts'],
  [8, '#charts'],
  [16, '#charts'],
] as const)(
  'controls are complete: %i GPUs at "%s"',
  async ([gpus, address], { page, onTestFinished }) => {
    const server = await GpumonServer.start({ GPUMON_SOURCE: `sim:${gpus}` });
    onTestFinished(() => server.stop());
    const frame = await openForMeasuring(page, server.url + address, HEIGHT_PX);
    await frame
      .locator(address === '' ? LIVE_CARD : LIVE_CHART)
      .first()
      .waitFor();
    expect(await findControlFaults(frame, WIDTHS)).toEqual([]);
  },
);

it.concurrent.for([
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
    const frame = await openForMeasuring(page, `${server.url}#fleet?${shown}`, HEIGHT_PX);
    await frame.locator('[data-testid=gpumon-fleet][data-state=live]').waitFor();
    expect(await findControlFaults(frame, WIDTHS)).toEqual([]);
  },
);

it('controls check detects faulty controls', async ({ page, onTestFinished }) => {
  const server = await GpumonServer.start({ GPUMON_SOURCE: 'sim:1' });
  onTestFinished(() => server.stop());
  const frame = await openForMeasuring(page, `${server.url}#charts`, HEIGHT_PX);
  await frame.locator(LIVE_CHART).first().waitFor();
  await frame.evaluate(() => {
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
  const faults = await findControlFaults(frame, [900, 1000]);
  expect(faults.map((fault) => fault.replace(/"Test" /g, ''))).toEqual(
    expect.arrayContaining([
      '900 px: button leaves div.gpumon-head',
      '900 px: button leaves the window',
      '900-1000 px: button overlaps button "Test"',
      '900-1000 px: button has more text than room',
    ]),
  );
});
