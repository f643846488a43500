/** Tests of the panel behind a JupyterHub with two users, each with their own server. */

import { spawn } from 'node:child_process';
import { writeFileSync } from 'node:fs';

import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { newPage, type PageProblems } from '../src/browser';
import { Charts } from '../src/charts';
import { it as base } from '../src/fixtures';
import { waitForIdleKernel, Lab, runCell } from '../src/lab';
import { newScenario, makeFakeEnvironment } from '../src/machine';
import { notebookOf } from '../src/notebook-file';
import { isRunning } from '../src/processes';
import { View } from '../src/view';
import { JupyterHub, type User } from './jupyterhub';

/** The time after which unused kernels and servers are ended. */
const IDLE_S = 5;
const CULL_KERNELS = [
  'cull_interval=1',
  `cull_idle_timeout=${String(IDLE_S)}`,
  'cull_connected=True',
];
const GPU = '[[gpu]]\nindex = 0\nmemory_used = "90 GiB"\n';

/** The code of a cell that runs until a file named `go` exists. */
const WAITING_CODE = 'import os, time\nwhile not os.path.exists("go"):\n    time.sleep(0.1)';

/** A value on the command line of another user's program. It must not be shown. */
const SECRET = '600.0625';

/** A user of JupyterLab, with the user's page. */
interface Person {
  page: Page;
  conduct: PageProblems;
  lab: Lab;
  view: View;
}

const it = base
  .extend('scenario', { scope: 'file' }, () => newScenario(GPU))
  .extend('hub', { scope: 'file' }, async ({ scenario, sharedWorker }, { onCleanup }) => {
    const hub = await JupyterHub.start(
      { ...makeFakeEnvironment(scenario), ...sharedWorker.environment },
      CULL_KERNELS.map((option) => `--MappingKernelManager.${option}`),
    );
    onCleanup(() => hub.stop());
    return hub;
  })
  /** A running program. If the tests run as root, it belongs to another user of the machine. */
  .extend('stranger', { scope: 'file' }, ({}, { onCleanup }) => {
    const asRoot = process.getuid?.() === 0;
    const child = spawn(
      'sleep',
      [asRoot ? SECRET : '600'],
      asRoot ? { uid: 65_534, gid: 65_534 } : {},
    );
    onCleanup(() => void child.kill());
    return child.pid ?? 0;
  })
  /** Two users, both with an open panel and open charts. */
  .extend('people', { scope: 'file' }, async ({ browser, hub }, { onCleanup }) => {
    const enter = async (user: User): Promise<Person> => {
      const { page, conduct } = await newPage(browser);
      await hub.open(page, user, 'lab');
      const lab = new Lab(page);
      await lab.waitUntilReady();
      await lab.showPanel();
      await lab.runCommand('GPU Charts');
      return { page, conduct, lab, view: new View(page) };
    };
    const [ana, ben] = await Promise.all([enter('ana'), enter('ben')]);
    onCleanup(async () => {
      await Promise.all([ana, ben].map(({ page }) => page.context().close()));
    });
    return { ana, ben };
  })
  .extend('ana', ({ people }) => people.ana)
  .extend('ben', ({ people }) => people.ben);

/**
 * Sends a request from an open page, with the page's cookies, and returns the server's response.
 */
const requestFromPage = (
  page: Page,
  method: string,
  url: string,
): Promise<{ status: number; text: string }> =>
  page.evaluate(
    async ([method, url]) => {
      const response = await fetch(url, { method });
      return { status: response.status, text: await response.text() };
    },
    [method, url] as const,
  );

describe('JupyterHub', () => {
  it('each user has panel, history and charts', async ({ ana, ben }) => {
    const watch = async ({ page, view, conduct }: Person): Promise<void> => {
      await view.waitUntilLive();
      await view.waitForChange(0, 'power.draw_watts');
      await view.waitForHistory(2);
      await new Charts(page).waitUntilLive();
      expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
      expect(conduct.foreignRequests).toEqual([]);
    };
    await Promise.all([watch(ana), watch(ben)]);
  });

  it('runs are private to their user', async ({ hub, ana, ben, worker }) => {
    const { page, view } = ana;
    await (await view.openMenuAction('gpumon-run')).click();
    const search = page.getByRole('combobox', { name: 'Search benchmarks' });
    await page.getByLabel('Device', { exact: true }).selectOption({ label: 'CPU' });
    await search.fill('triad');
    await search.press('ArrowDown');
    await search.press('Enter');
    await page.locator('.gpumon-run-table tr').filter({ hasText: '4,020' }).waitFor();
    const runs = 'gpumon/api/v1/runs';
    expect((await requestFromPage(page, 'GET', `${hub.userUrl('ana')}${runs}`)).text).toContain(
      'triad',
    );
    expect(
      JSON.parse((await requestFromPage(ben.page, 'GET', `${hub.userUrl('ben')}${runs}`)).text),
    ).toMatchObject({ runs: [] });
    // This request lacks the header `X-Gpumon`. A page of another origin cannot send this header,
    // so the server requires it.
    const unproven = await requestFromPage(page, 'POST', `${hub.userUrl('ana')}${runs}`);
    expect(unproven).toMatchObject({
      status: 403,
      text: expect.stringContaining('X-Gpumon') as string,
    });
    for (const method of ['GET', 'POST']) {
      expect((await requestFromPage(ben.page, method, `${hub.userUrl('ana')}${runs}`)).status).toBe(
        403,
      );
    }
    worker.finishRuns();
    await page.locator('.gpumon-run[data-status=done]').waitFor();
    await page.keyboard.press('Escape');
  });

  it('only user of a notebook sees its name', async ({ hub, scenario, stranger, ana, ben }) => {
    const { page } = ana;
    hub.write('ana', 'train.ipynb', notebookOf([WAITING_CODE]));
    await page.goto(`${hub.userUrl('ana')}lab/tree/train.ipynb`);
    await ana.lab.waitUntilReady();
    await waitForIdleKernel(page);
    await runCell(page);
    const pid = await hub.kernelPid('ana');
    const holds = (pid: number): string =>
      `[[process]]\ngpu = 0\npid = ${String(pid)}\nmemory = "20 GiB"\n`;
    writeFileSync(scenario, GPU + holds(pid) + holds(stranger));
    const gpumons = [...(await hub.gpumonPids('ana')), ...(await hub.gpumonPids('ben'))];
    gpumons.forEach((gpumon) => process.kill(gpumon, 'SIGKILL'));
    const row = (person: Person, of: number): Locator =>
      person.page.locator(`#gpumon-panel [data-pid="${String(of)}"]`).first();
    await row(ana, pid).filter({ hasText: 'train.ipynb' }).waitFor();
    for (const person of [ana, ben]) {
      await row(person, stranger).filter({ hasText: '20.0' }).waitFor();
      expect(await row(person, stranger).innerText()).not.toContain(SECRET);
    }
    const { text } = await requestFromPage(
      page,
      'GET',
      `${hub.userUrl('ana')}gpumon/api/v1/snapshot`,
    );
    expect(text).toContain('ipykernel_launcher');
    expect(text).not.toContain(SECRET);
    hub.write('ana', 'go', '');
    await expect.poll(() => isRunning(pid)).toBe(false);
    await ana.view.waitUntilLive();
    await ana.lab.runCommand('GPU Charts');
    await page.getByTestId('gpumon-cells').filter({ hasText: 'train.ipynb' }).waitFor();
    expect(await ben.page.getByTestId('gpumon-dashboard').count()).toBe(1);
    const cells = ben.page.getByTestId('gpumon-cells').filter({ hasText: 'train.ipynb' });
    expect(await cells.count()).toBe(0);
  });

  it('culling idle Jupyter servers also ends gpumon', async ({ hub, ana, ben, onTestFinished }) => {
    // JupyterLab's regular requests to its server would count as activity, so they are blocked.
    await ben.page.route(/\/user\/ben\/(lab\/)?api\//, () => undefined);
    await ana.page.goto(`${hub.userUrl('ana')}gpumon/`);
    await Promise.all([ana.view.waitUntilLive(), ben.view.waitUntilLive()]);
    const gpumons = [...(await hub.gpumonPids('ana')), ...(await hub.gpumonPids('ben'))];
    expect(gpumons).toHaveLength(4);
    await Promise.all([ana, ben].map(({ view }) => view.waitForChange(0, 'power.draw_watts')));
    const culler = hub.startCuller(IDLE_S);
    onTestFinished(async () => {
      await culler.stop();
    });
    await expect.poll(() => hub.runningUsers(), { message: culler.output }).toEqual([]);
    await expect.poll(() => gpumons.filter(isRunning)).toEqual([]);
    // The panel uses this status to detect that the user's server is not running.
    expect(
      (await requestFromPage(ana.page, 'GET', `${hub.userUrl('ana')}gpumon/healthz`)).status,
    ).toBe(424);
  });
});
