/** Notebooks whose kernels hold GPUs: real kernels in a real JupyterLab, their GPU memory told by the fake library. */

import { writeFileSync } from 'node:fs';
import path from 'node:path';

import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { closePage, launchBrowser, newPage } from './browser';
import { JupyterServer, type KernelSession } from './jupyter';
import { kernelReady, Lab } from './lab';
import { newFolder, overFake } from './machine';
import { notebookOf } from './notebook-file';
import { childrenOf, isRunning } from './processes';
import { View } from './view';

/** Its kernel starts a process of its own. */
const WITH_A_WORKER = notebookOf(['import subprocess\nworker = subprocess.Popen(["sleep", "600"])\nprint("started")']);

describe('notebooks that hold a GPU', () => {
  let browser: Browser;
  let jupyter: JupyterServer;
  let train: KernelSession;
  let other: KernelSession;
  let page: Page;
  let lab: Lab;
  let view: View;

  const scenario = path.join(newFolder(), 'scenario.toml');
  const notebooks = (): Locator => page.getByTestId('gpumon-notebook-table');
  const row = (pid: number): Locator => notebooks().locator(`[data-pid="${String(pid)}"]`);

  beforeAll(async () => {
    browser = await launchBrowser();
    jupyter = await JupyterServer.start(overFake(scenario));
    jupyter.write('train.ipynb', WITH_A_WORKER);
    jupyter.write('eval.ipynb', WITH_A_WORKER);
    train = await jupyter.startKernel('train.ipynb');
    other = await jupyter.startKernel('eval.ipynb');
    const opened = await newPage(browser);
    await opened.page.goto(`${jupyter.page('lab/tree/train.ipynb')}&reset`);
    await new Lab(opened.page).ready();
    await kernelReady(opened.page);
    await opened.page.locator('.jp-CodeCell .cm-content').first().click();
    await opened.page.keyboard.press('Shift+Enter');
    await opened.page.locator('.jp-OutputArea-output', { hasText: 'started' }).waitFor();
    await opened.page.context().close();
    const [worker] = childrenOf(train.pid);
    const holds = (pid: number | undefined, gib: number): string =>
      `[[process]]\ngpu = 0\npid = ${String(pid)}\nmemory = "${String(gib)} GiB"\nsm_percent = ${String(gib)}\n`;
    const gpu = '[[gpu]]\nindex = 0\nmemory_used = "90 GiB"\n';
    writeFileSync(
      scenario,
      gpu + holds(train.pid, 20) + holds(worker, 40) + holds(other.pid, 5) + holds(process.pid, 1),
    );
  });
  beforeEach(async () => {
    ({ page } = await newPage(browser));
    lab = new Lab(page);
    view = new View(page);
    await lab.open(`${jupyter.page('lab')}&reset`);
    await lab.showPanel();
    await view.live();
  });
  afterEach(async ({ task }) => {
    await closePage(page, task);
  });
  afterAll(async () => {
    await browser.close();
    await jupyter.stop();
  });

  it('are named, with what their kernels have started', async () => {
    for (const text of ['train.ipynb', '1 more started', '60.0']) {
      await row(train.pid).filter({ hasText: text }).waitFor();
    }
    await row(other.pid).filter({ hasText: 'eval.ipynb' }).waitFor();
    const others = page.getByTestId('gpumon-process-table');
    await others.locator(`[data-pid="${String(process.pid)}"]`).waitFor();
  });

  it('are shown by their name', async () => {
    await row(other.pid).locator('.gpumon-process-go').click();
    await page.locator('.lm-TabBar-tab.jp-mod-current', { hasText: 'eval.ipynb' }).first().waitFor();
  });

  it("are in JupyterLab's list of what runs, while their amount is looked at", async () => {
    await page.locator('[data-id="jp-running-sessions"]').first().click();
    const section = page.locator('.jp-RunningSessions-section', { hasText: 'eval.ipynb' }).last();
    const item = section.locator('.jp-RunningSessions-item', { hasText: 'train.ipynb' });
    await expect.poll(() => item.innerText()).toMatch(/train\.ipynb\s+60\.0\sGiB/);
    await item.getByText('train.ipynb').click();
    await page.locator('.lm-TabBar-tab.jp-mod-current', { hasText: 'train.ipynb' }).first().waitFor();
  });

  it('are called by their new name after a rename', async () => {
    await jupyter.api('PATCH', 'contents/eval.ipynb', { path: 'renamed.ipynb' });
    await jupyter.api('PATCH', `sessions/${other.id}`, { path: 'renamed.ipynb', name: 'renamed.ipynb' });
    await row(other.pid).filter({ hasText: 'renamed.ipynb' }).waitFor();
  });

  it('lose their kernel by its menu after a question, and no other does', async () => {
    const choose = async (): Promise<void> => {
      await row(train.pid).locator('.gpumon-process-menu').click();
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
