/**
 * Tests of notebooks whose kernels use GPUs: real kernels in a real JupyterLab, with GPU memory
 * scripted by the fake library.
 */

import type { Locator, Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { newPage } from './browser';
import { it as base } from './fixtures';
import { waitForIdleKernel, Lab, runCell } from './lab';
import { notebookOf } from './notebook-file';
import { childrenOf, isRunning } from './processes';

/** A notebook whose kernel starts another process. */
const NOTEBOOK_WITH_WORKER = notebookOf([
  'import subprocess\nworker = subprocess.Popen(["sleep", "600"])\nprint("started")',
]);

/** The session path of a console in JupyterLab's format. */
const CONSOLE = 'console-1-0d7c4dcc-22a5-44e5-a5b3-b2a0f5f3ae9c';
const SAME_NAME_PATHS = ['first/same.ipynb', 'second/same.ipynb'] as const;

/**
 * A console, and notebooks with running kernels and their worker processes. All tests of this file
 * share them.
 */
const it = base.extend(
  'kernels',
  { scope: 'file', auto: true },
  async ({ browser, sharedScripted: jupyter }) => {
    await jupyter.reset();
    jupyter.write('train.ipynb', NOTEBOOK_WITH_WORKER);
    jupyter.write('eval.ipynb', NOTEBOOK_WITH_WORKER);
    const train = await jupyter.startKernel('train.ipynb');
    const other = await jupyter.startKernel('eval.ipynb');
    SAME_NAME_PATHS.forEach((path) => jupyter.write(path, NOTEBOOK_WITH_WORKER));
    const [first, second] = [
      await jupyter.startKernel(SAME_NAME_PATHS[0]),
      await jupyter.startKernel(SAME_NAME_PATHS[1]),
    ];
    const console = await jupyter.startKernel(CONSOLE, 'python3', 'console');
    const { page } = await newPage(browser);
    await page.goto(`${jupyter.pageUrl('lab/tree/train.ipynb')}&reset`);
    await new Lab(page).waitUntilReady();
    await waitForIdleKernel(page);
    await runCell(page);
    await page.locator('.jp-OutputArea-output', { hasText: 'started' }).waitFor();
    await page.context().close();
    const [worker] = childrenOf(train.pid);
    const holds = (pid: number | undefined, gib: number): string =>
      `[[process]]\ngpu = 0\npid = ${pid}\nmemory = "${gib} GiB"\nsm_percent = ${gib}\n`;
    const gpu = '[[gpu]]\nindex = 0\nmemory_used = "90 GiB"\n';
    const more = holds(first.pid, 4) + holds(second.pid, 3) + holds(console.pid, 2);
    await jupyter.restartWithScenario(
      gpu +
        holds(train.pid, 20) +
        holds(worker, 40) +
        holds(other.pid, 5) +
        more +
        holds(process.pid, 1),
    );
    return { train, other, first, second, console };
  },
);

describe('notebooks that use a GPU', () => {
  const rowOf = (page: Page, pid: number): Locator =>
    page.getByTestId('gpumon-notebook-table').locator(`[data-pid="${pid}"]`);

  it.beforeEach(async ({ sharedScripted, lab, view }) => {
    await lab.open(`${sharedScripted.pageUrl('lab')}&reset`);
    await lab.showPanel();
    await view.waitUntilLive();
  });

  it('notebooks are named with child processes', async ({ page, kernels: { train, other } }) => {
    for (const text of ['train.ipynb', '1 child process', '60.0']) {
      await rowOf(page, train.pid).filter({ hasText: text }).waitFor();
    }
    await rowOf(page, other.pid).filter({ hasText: 'eval.ipynb' }).waitFor();
    const others = page.getByTestId('gpumon-process-table');
    await others.locator(`[data-pid="${process.pid}"]`).waitFor();
  });

  it('click on name shows the notebook', async ({ page, kernels: { other } }) => {
    await rowOf(page, other.pid).locator('.gpumon-process-link').click();
    await page
      .locator('.lm-TabBar-tab.jp-mod-current', { hasText: 'eval.ipynb' })
      .first()
      .waitFor();
  });

  it('list of running kernels shows GPU memory', async ({ page }) => {
    await page.locator('[data-id="jp-running-sessions"]').first().click();
    const section = page.locator('.jp-RunningSessions-section', { hasText: 'eval.ipynb' }).last();
    const item = section.locator('.jp-RunningSessions-item', { hasText: 'train.ipynb' });
    await expect.poll(() => item.innerText()).toMatch(/train\.ipynb\s+60\.0\sGiB/);
    await item.getByText('train.ipynb').click();
    await page
      .locator('.lm-TabBar-tab.jp-mod-current', { hasText: 'train.ipynb' })
      .first()
      .waitFor();
  });

  it('notebooks of same name show folders', async ({ page, kernels: { first, second } }) => {
    for (const [index, { pid }] of [first, second].entries()) {
      await rowOf(page, pid)
        .filter({ hasText: SAME_NAME_PATHS[index] ?? '' })
        .waitFor();
    }
    for (const item of ['Interrupt', 'Restart', 'Shut Down']) {
      await rowOf(page, second.pid).locator('.gpumon-process-menu').click();
      await page.locator('.lm-Menu-item', { hasText: `${item} Kernel` }).click();
      const asked = page.locator('.jp-Dialog-content');
      await asked.waitFor();
      const text = (await asked.innerText()).replaceAll(/\s+/g, ' ');
      expect(text).toContain(`kernel of second/same.ipynb?`);
      expect(text).toContain('second/same.ipynb holds 3.00 GiB of GPU 0.');
      await asked.getByRole('button', { name: 'Cancel' }).click();
    }
  });

  it('consoles are listed separately and can be opened', async ({
    page,
    sharedScripted,
    kernels: { console },
  }) => {
    const row = page.getByTestId('gpumon-console-table').locator(`[data-pid="${console.pid}"]`);
    await row.filter({ hasText: 'Console 1' }).waitFor();
    expect(await rowOf(page, console.pid).count()).toBe(0);
    await row.locator('.gpumon-process-link').click();
    await page.locator('.jp-CodeConsole').waitFor();
    type Session = { path: string; kernel: { id: string } };
    const sessions = await sharedScripted.requestApi<Session[]>('GET', 'sessions');
    expect(sessions.filter(({ path }) => path === CONSOLE).map(({ kernel }) => kernel.id)).toEqual([
      console.kernelId,
    ]);
  });

  it('failure to open is explained', async ({ page, sharedScripted, kernels: { first } }) => {
    await sharedScripted.requestApi('DELETE', `contents/${SAME_NAME_PATHS[0]}`);
    await rowOf(page, first.pid).locator('.gpumon-process-link').click();
    const dialog = page.locator('.jp-Dialog-content', { hasText: 'Cannot open first/same.ipynb' });
    await dialog.waitFor();
    await dialog.getByRole('button').first().click();
  });

  it('renamed notebook has its new name', async ({ page, sharedScripted, kernels: { other } }) => {
    await sharedScripted.requestApi('PATCH', 'contents/eval.ipynb', { path: 'renamed.ipynb' });
    await sharedScripted.requestApi('PATCH', `sessions/${other.id}`, {
      path: 'renamed.ipynb',
      name: 'renamed.ipynb',
    });
    await rowOf(page, other.pid).filter({ hasText: 'renamed.ipynb' }).waitFor();
  });

  it('menu ends only the selected kernel', async ({ page, kernels: { train, other } }) => {
    const choose = async (): Promise<void> => {
      await rowOf(page, train.pid).locator('.gpumon-process-menu').click();
      await page.locator('.lm-Menu-item', { hasText: 'Shut Down Kernel' }).click();
    };
    await choose();
    await page.locator('.jp-Dialog button', { hasText: 'Cancel' }).click();
    expect(isRunning(train.pid)).toBe(true);
    await choose();
    await page.locator('.jp-Dialog button', { hasText: 'Shut Down' }).click();
    await expect.poll(() => isRunning(train.pid)).toBe(false);
    expect(isRunning(other.pid)).toBe(true);
  });
});
