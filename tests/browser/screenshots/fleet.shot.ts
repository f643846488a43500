/** Screenshots of the map and the usage of a generated fleet with 8,000 GPUs. */

import { it, onTestFinished } from 'vitest';

import { generateFleet } from '../../../static/src/testing/fleet';
import { launchBrowser, newPage } from '../src/browser';
import { FakeFleet } from '../src/fake-fleet';
import { saveImage } from './images';

const VIEWS = [
  { name: 'fleet-light.png', colorScheme: 'light', address: 'node=node-0436&gpu=6' },
  { name: 'fleet-dark.png', colorScheme: 'dark', address: 'view=users' },
] as const;

it('images of a fleet', async () => {
  const browser = await launchBrowser();
  onTestFinished(() => browser.close());
  const server = await FakeFleet.start(generateFleet({ nodes: 1000, gpus: 8, at_ms: Date.now() }));
  onTestFinished(() => server.stop());
  for (const { name, colorScheme, address } of VIEWS) {
    const { page } = await newPage(browser, {
      viewport: { width: 1440, height: 810 },
      deviceScaleFactor: 1.5,
      colorScheme,
    });
    await page.goto(`${server.url}#fleet?${address}`);
    await page.locator('[data-testid=gpumon-fleet][data-state=live]').waitFor();
    // The data of time ranges arrive after the fleet itself.
    await page.locator('[data-tile=energy]:not([data-pending])').waitFor();
    await page.locator('.gpumon-tile canvas').first().waitFor();
    await saveImage(page, name);
    await page.context().close();
  }
});
