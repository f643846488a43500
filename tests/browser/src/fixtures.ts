/**
 * What tests have at hand: pages of one browser, and two Jupyter servers for all of them, since
 * starting one takes longer than most tests. Each test finds a server as if it had just been
 * started.
 *
 * One that cannot be made fails the tests that ask for it, and no others.
 */

import { test } from 'vitest';

import { closePage, launchBrowser, newPage } from './browser';
import { Charts } from './charts';
import { JupyterServer } from './jupyter';
import { Lab } from './lab';
import { View } from './view';
import { Worker } from './worker';

/**
 * What is shared, by its name. Vitest loads this module anew for each file, and keeps what is
 * global.
 */
const global = globalThis as { gpumonShared?: Map<string, Promise<unknown>> };
const SHARED = (global.gpumonShared ??= new Map<string, Promise<unknown>>());

/** Makes something for the first file that asks for it; `end` is called after the last. */
async function shared<T>(
  name: string,
  make: () => Promise<T>,
  end: (made: T) => Promise<void>,
  onCleanup: (clean: () => Promise<void>) => void,
): Promise<T> {
  const before = SHARED.get(name);
  if (before !== undefined) {
    return before as Promise<T>;
  }
  const made = make();
  SHARED.set(name, made);
  onCleanup(async () => {
    SHARED.delete(name);
    await end(await made);
  });
  return made;
}

export const it = test
  .extend('browser', { scope: 'worker' }, ({}, { onCleanup }) =>
    shared('browser', launchBrowser, (browser) => browser.close(), onCleanup),
  )
  .extend('sharedWorker', { scope: 'worker' }, ({}, { onCleanup }) =>
    shared(
      'worker',
      () => Promise.resolve(new Worker()),
      () => Promise.resolve(),
      onCleanup,
    ),
  )
  .extend('sharedSimulated', { scope: 'worker' }, ({ sharedWorker }, { onCleanup }) => {
    const start = (): Promise<JupyterServer> =>
      JupyterServer.start({ GPUMON_SOURCE: 'sim:2', ...sharedWorker.env });
    return shared('simulated', start, (server) => server.stop(), onCleanup);
  })
  .extend('sharedScripted', { scope: 'worker' }, ({}, { onCleanup }) =>
    shared(
      'scripted',
      () => JupyterServer.startScripted(),
      (server) => server.stop(),
      onCleanup,
    ),
  )
  /** Does the runs that are started on a server which has it in its environment. */
  .extend('worker', ({ sharedWorker }) => {
    sharedWorker.reset();
    return sharedWorker;
  })
  /** Jupyter with two simulated GPUs. */
  .extend('simulated', async ({ sharedSimulated, sharedWorker }) => {
    sharedWorker.reset();
    await sharedSimulated.reset();
    return sharedSimulated;
  })
  /** Jupyter with the GPUs of a scenario, which a test writes. */
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
