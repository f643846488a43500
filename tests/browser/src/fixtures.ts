/**
 * Fixtures: pages of one browser, and two Jupyter servers that all tests share, because starting
 * one takes longer than most tests. The servers are reset for each test.
 *
 * If a fixture cannot be created, only the tests that use it fail.
 */

import { test } from 'vitest';

import { closePage, launchBrowser, newPage } from './browser';
import { Charts } from './charts';
import { JupyterServer } from './jupyter';
import { Lab } from './lab';
import { View } from './view';
import { Worker } from './worker';

/**
 * The shared fixtures by name. The map is global, because Vitest loads this module again for each
 * file.
 */
const global = globalThis as { gpumonShared?: Map<string, Promise<unknown>> };
const SHARED_FIXTURES = (global.gpumonShared ??= new Map<string, Promise<unknown>>());

/** Creates a fixture when the first file requests it. `end` is called after the last file. */
async function createSharedFixture<T>(
  name: string,
  make: () => Promise<T>,
  end: (made: T) => Promise<void>,
  onCleanup: (clean: () => Promise<void>) => void,
): Promise<T> {
  const before = SHARED_FIXTURES.get(name);
  if (before !== undefined) {
    return before as Promise<T>;
  }
  const made = make();
  SHARED_FIXTURES.set(name, made);
  onCleanup(async () => {
    SHARED_FIXTURES.delete(name);
    await end(await made);
  });
  return made;
}

export const it = test
  .extend('browser', { scope: 'worker' }, ({}, { onCleanup }) =>
    createSharedFixture('browser', launchBrowser, (browser) => browser.close(), onCleanup),
  )
  .extend('sharedWorker', { scope: 'worker' }, ({}, { onCleanup }) =>
    createSharedFixture(
      'worker',
      () => Promise.resolve(new Worker()),
      () => Promise.resolve(),
      onCleanup,
    ),
  )
  .extend('sharedSimulated', { scope: 'worker' }, ({ sharedWorker }, { onCleanup }) => {
    const start = (): Promise<JupyterServer> =>
      JupyterServer.start({ GPUMON_SOURCE: 'sim:2', ...sharedWorker.environment });
    return createSharedFixture('simulated', start, (server) => server.stop(), onCleanup);
  })
  .extend('sharedScripted', { scope: 'worker' }, ({}, { onCleanup }) =>
    createSharedFixture(
      'scripted',
      () => JupyterServer.startScripted(),
      (server) => server.stop(),
      onCleanup,
    ),
  )
  /**
   * A fake program that executes benchmark runs, for servers that are started with the program's
   * environment variables.
   */
  .extend('worker', ({ sharedWorker }) => {
    sharedWorker.blockRuns();
    return sharedWorker;
  })
  /** A Jupyter server with two simulated GPUs. */
  .extend('simulated', async ({ sharedSimulated, sharedWorker }) => {
    sharedWorker.blockRuns();
    await sharedSimulated.reset();
    return sharedSimulated;
  })
  /** A Jupyter server with the GPUs of a scenario that the test writes. */
  .extend('scripted', async ({ sharedScripted }) => {
    await sharedScripted.reset();
    return sharedScripted;
  })
  .extend('opened', async ({ browser, task }, { onCleanup }) => {
    const opened = await newPage(browser);
    onCleanup(() => closePage(opened.page, task));
    return opened;
  })
  .extend('page', ({ opened }) => opened.page)
  .extend('conduct', ({ opened }) => opened.conduct)
  .extend('lab', ({ page }) => new Lab(page))
  .extend('view', ({ page }) => new View(page))
  .extend('charts', ({ page }) => new Charts(page));
