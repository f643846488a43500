/**
 * What tests have at hand: pages of one browser, and two Jupyter servers for all of them, since starting one takes
 * longer than most tests. Each test finds a server as if it had just been started.
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

export const it = test
  .extend('browser', { scope: 'worker' }, async ({}, { onCleanup }) => {
    const browser = await launchBrowser();
    onCleanup(() => browser.close());
    return browser;
  })
  .extend('sharedWorker', { scope: 'worker' }, () => new Worker())
  .extend('sharedSimulated', { scope: 'worker' }, async ({ sharedWorker }, { onCleanup }) => {
    const server = await JupyterServer.start({ GPUMON_SOURCE: 'sim:2', ...sharedWorker.env });
    onCleanup(() => server.stop());
    return server;
  })
  .extend('sharedScripted', { scope: 'worker' }, async ({}, { onCleanup }) => {
    const server = await JupyterServer.startScripted();
    onCleanup(() => server.stop());
    return server;
  })
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
