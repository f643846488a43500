/** What the panel says where something is missing: in words, with what to do about it. */

import { writeFileSync } from 'node:fs';
import path from 'node:path';

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, it } from 'vitest';

import { closePage, launchBrowser, newPage } from './browser';
import { JupyterServer } from './jupyter';
import { Lab } from './lab';
import { newFolder, overFake } from './machine';
import { View } from './view';

describe('the panel without', () => {
  let browser: Browser;
  let jupyter: JupyterServer;
  let page: Page;
  let view: View;

  const open = async (env: Record<string, string>, args: readonly string[] = []): Promise<void> => {
    jupyter = await JupyterServer.start(env, { arguments: args });
    const lab = new Lab(page);
    await lab.open(`${jupyter.page('lab')}&reset`);
    await lab.showPanel();
  };
  /** Waits until the notice says all of this. */
  const says = async (...words: string[]): Promise<void> => {
    for (const word of words) {
      await view.notice.filter({ hasText: word }).waitFor();
    }
  };

  beforeAll(async () => {
    browser = await launchBrowser();
  });
  beforeEach(async () => {
    ({ page } = await newPage(browser));
    view = new View(page);
  });
  afterEach(async ({ task }) => {
    await closePage(page, task);
    await jupyter.stop();
  });
  afterAll(async () => {
    await browser.close();
  });

  it('permission says whom to ask, and goes on by itself when it is given', async () => {
    const scenario = path.join(newFolder(), 'scenario.toml');
    writeFileSync(scenario, 'init_error = { code = 4 }\n');
    await open(overFake(scenario));
    await says('The NVIDIA driver refuses this user', 'check the permissions of /dev/nvidia*', 'gpumon doctor');
    writeFileSync(scenario, 'gpus = 1\n');
    await view.live();
  });

  it('a driver says what to install', async () => {
    await open({ GPUMON_SOURCE: 'nvml', GPUMON_NVML_LIB: '/nowhere/libnvidia-ml.so.1' });
    await says('cannot load NVIDIA', 'install the NVIDIA driver', 'gpumon doctor');
  });

  it('jupyter-server-proxy says how to install it', async () => {
    await open({ GPUMON_SOURCE: 'sim' }, ['--ServerApp.jpserver_extensions={"jupyter_server_proxy": False}']);
    await says('The way to gpumon is missing', 'pip install jupyter-server-proxy');
  });

  it('a login says so', async () => {
    await open({ GPUMON_SOURCE: 'sim' });
    await view.live();
    // What a page sends that was left open beyond the end of its login.
    await page.context().clearCookies();
    await page.route('**/gpumon/healthz*', async (route) => {
      const headers = await route.request().allHeaders();
      delete headers.authorization;
      await route.continue({ headers });
    });
    jupyter.gpumons.forEach((pid) => process.kill(pid, 'SIGKILL'));
    await says('Not logged in', 'log in again');
  });

  it('a server that starts says how to see why', async () => {
    await open({ GPUMON_SOURCE: 'nonsense' });
    await says('gpumon does not start', 'gpumon serve');
  });

  it('a part of its own, as after an update, says to reload the page', async () => {
    const isGone = (url: URL): boolean => /\/extensions\/gpumon\/static\/dist_view_js\.[^/]+\.js$/.test(url.pathname);
    await page.route(isGone, (route) => route.fulfill({ status: 404 }));
    const told = page.waitForEvent('console', (message) => message.text().includes('cannot be loaded'));
    await open({ GPUMON_SOURCE: 'sim' });
    await page.locator('#gpumon-panel', { hasText: 'Reload the page' }).waitFor();
    await told;
    await page.unroute(isGone);
    await page.reload();
    await view.live();
  });

  it('a server of its own version says both versions, and shows what it can', async () => {
    await page.routeWebSocket(/\/gpumon\/api\/v1\/stream/, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((text) => {
        const { events, ...frame } = JSON.parse(String(text)) as Record<string, unknown>;
        socket.send(JSON.stringify(frame.type === 'hello' ? { ...frame, version: '0.0.9' } : { ...frame, events }));
      });
    });
    await open({ GPUMON_SOURCE: 'sim' });
    await says('gpumon is too old for this panel', 'gpumon 0.0.9', 'Restart Jupyter');
    await view.live();
  });
});
