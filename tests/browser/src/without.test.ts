/**
 * Tests of the panel when something that it needs is missing: its messages, and whether their
 * advice helps.
 */

import { appendFileSync, cpSync, mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { describe } from 'vitest';

import { it as base } from './fixtures';
import { JupyterServer, type ServerOptions } from './jupyter';
import type { Lab } from './lab';
import { newFolder, ROOT } from './machine';
import type { View } from './view';

const it = base
  /** Returns a function that opens the panel on an existing Jupyter server. */
  .extend(
    'open',
    ({ lab }) =>
      (jupyter: JupyterServer) =>
        openPanel(lab, jupyter),
  )
  /** Returns a function that starts a Jupyter server and opens the panel there. */
  .extend(
    'openOwn',
    ({ lab }, { onCleanup }) =>
      async (env: Record<string, string>, options: ServerOptions = {}) => {
        const jupyter = await JupyterServer.start(env, options);
        onCleanup(() => jupyter.stop());
        await openPanel(lab, jupyter);
      },
  )
  /** Returns a function that waits until the panel's notice contains all of these texts. */
  .extend(
    'says',
    ({ view }) =>
      (...words: string[]) =>
        waitForNotice(view, words),
  );

/**
 * Creates a folder of Python packages that contains gpumon's own package. It also contains the
 * files that installers write for an unrelated package with the same name.
 */
function createPackagesWithUnrelatedGpumon(): string {
  const folder = newFolder();
  cpSync(path.join(ROOT, 'python', 'gpumon'), path.join(folder, 'gpumon'), { recursive: true });
  const information = path.join(folder, 'gpumon-0.0.11.dist-info');
  mkdirSync(information);
  writeFileSync(
    path.join(information, 'METADATA'),
    'Metadata-Version: 2.1\nName: gpumon\nVersion: 0.0.11\n',
  );
  return folder;
}

async function openPanel(lab: Lab, jupyter: JupyterServer): Promise<void> {
  await lab.open(`${jupyter.pageUrl('lab')}&reset`);
  await lab.showPanel();
}

async function waitForNotice(view: View, words: readonly string[]): Promise<void> {
  for (const word of words) {
    await view.notice.filter({ hasText: word }).waitFor();
  }
}

describe('panel with a missing prerequisite', () => {
  it('missing permission is explained until it is granted', async ({
    scripted,
    view,
    open,
    says,
  }) => {
    await scripted.restartWithScenario('init_error = { code = 4 }\n');
    await open(scripted);
    await says(
      'The NVIDIA driver denies access to this user',
      'the permissions of /dev/nvidia*',
      'gpumon doctor',
    );
    scripted.replaceScenario('gpus = 1\n');
    await view.waitUntilLive();
  });

  it('missing driver has installation advice', async ({ openOwn, says }) => {
    await openOwn({ GPUMON_SOURCE: 'nvml', GPUMON_NVML_LIB: '/nowhere/libnvidia-ml.so.1' });
    await says('cannot load NVIDIA', 'set --nvml-lib to the path of', 'gpumon doctor');
  });

  it('missing jupyter-server-proxy has installation advice', async ({ openOwn, says }) => {
    await openOwn(
      { GPUMON_SOURCE: 'sim' },
      { arguments: ['--ServerApp.jpserver_extensions={"jupyter_server_proxy": False}'] },
    );
    await says('gpumon is not proxied by this Jupyter server', 'pip install jupyter-server-proxy');
  });

  it('expired login is reported', async ({ simulated, page, view, open, says }) => {
    await open(simulated);
    await view.waitUntilLive();
    // This simulates a login that expired while the page was open. Any request with the token would
    // get a new login from Jupyter, so the token is removed from all requests.
    await page.route(`${simulated.url}**`, async (route) => {
      const headers = await route.request().allHeaders();
      delete headers.authorization;
      await route.continue({ headers });
    });
    await page.context().clearCookies();
    simulated.gpumonPids.forEach((pid) => process.kill(pid, 'SIGKILL'));
    await says('Not logged in', 'log in again');
  });

  it('message about failing server explains how to debug', async ({ openOwn, says }) => {
    await openOwn({ GPUMON_SOURCE: 'nonsense' });
    await says('gpumon failed to start', 'gpumon serve');
  });

  it('missing script file is reported with reload advice', async ({
    simulated,
    page,
    view,
    open,
  }) => {
    const isGone = (url: URL): boolean =>
      /\/extensions\/gpumon\/static\/dist_view_js\.[^/]+\.js$/.test(url.pathname);
    await page.route(isGone, (route) => route.fulfill({ status: 404 }));
    const consoleMessage = page.waitForEvent('console', (message) =>
      message.text().includes('cannot be loaded'),
    );
    await open(simulated);
    await page.locator('#gpumon-panel', { hasText: 'Reload the page' }).waitFor();
    await consoleMessage;
    await page.unroute(isGone);
    await page.reload();
    await view.waitUntilLive();
  });

  it('version mismatch shows both versions and data', async ({
    simulated,
    page,
    view,
    open,
    says,
  }) => {
    // If the browser cannot decompress, frames are sent as text.
    await page.addInitScript('delete globalThis.DecompressionStream');
    await page.routeWebSocket(/\/gpumon\/api\/v1\/stream/, (socket) => {
      const server = socket.connectToServer();
      server.onMessage((text) => {
        const { events, ...frame } = JSON.parse(String(text)) as Record<string, unknown>;
        socket.send(
          JSON.stringify(
            frame.type === 'hello' ? { ...frame, version: '0.0.9' } : { ...frame, events },
          ),
        );
      });
    });
    await open(simulated);
    await says('gpumon is too old for this panel', 'gpumon 0.0.9', 'Restart Jupyter');
    await view.waitUntilLive();
  });
});

describe('panel next to another package gpumon', () => {
  it('other package is reported while GPUs are shown', async ({ openOwn, view, says }) => {
    await openOwn({ GPUMON_SOURCE: 'sim', PYTHONPATH: createPackagesWithUnrelatedGpumon() });
    await says(
      'Another package called gpumon is installed',
      'gpumon 0.0.11',
      'pip uninstall gpumon jupyterlab-gpumon',
    );
    await view.waitUntilLive();
  });

  it('other package that overwrote gpumon is reported', async ({ openOwn, says }) => {
    const packages = createPackagesWithUnrelatedGpumon();
    const program = path.join(packages, 'bin', 'gpumon');
    mkdirSync(path.dirname(program));
    writeFileSync(program, '#!/bin/sh\nexit 2\n', { mode: 0o755 });
    // This makes gpumon look for its program in the folder of `program`, as if installers put
    // programs there.
    appendFileSync(
      path.join(packages, 'gpumon', '_find.py'),
      `\n_script_folders = lambda: [${JSON.stringify(path.dirname(program))}]\n`,
    );
    await openOwn({ GPUMON_SOURCE: 'sim', PYTHONPATH: packages });
    await says(
      'Another package called gpumon is installed',
      'gpumon 0.0.11',
      'pip uninstall gpumon jupyterlab-gpumon',
    );
  });
});
