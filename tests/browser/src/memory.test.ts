/** GPU memory that runs out: real kernels whose memory the fake library scripts, and errors as PyTorch words them. */

import { writeFileSync } from 'node:fs';
import path from 'node:path';

import type { Browser, Locator, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { closePage, launchBrowser, newPage, type Conduct } from './browser';
import { JupyterServer, type KernelSession } from './jupyter';
import { kernelReady, Lab, runCell } from './lab';
import { newFolder, overFake } from './machine';
import { notebookOf } from './notebook-file';
import { isRunning } from './processes';

const FAILS = `class OutOfMemoryError(RuntimeError):
    pass
if open("mended").read() == "no":
    raise OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 139.81 GiB of which 12.73 GiB "
        "is free. Including non-PyTorch memory, this process has 18.73 GiB memory in use. Of the allocated memory "
        "9.08 GiB is allocated by PyTorch, and 9.35 GiB is reserved by PyTorch but unallocated.")`;

describe('GPU memory that runs out', () => {
  let browser: Browser;
  let jupyter: JupyterServer;
  let train: KernelSession;
  let other: KernelSession;
  let page: Page;
  let conduct: Conduct;

  const scenario = path.join(newFolder(), 'scenario.toml');
  const note = (): Locator => page.getByTestId('gpumon-oom');
  const said = async (locator: Locator): Promise<string> => (await locator.innerText()).replaceAll('\u00a0', ' ');
  const run = async (): Promise<void> => {
    await runCell(page);
  };

  beforeAll(async () => {
    browser = await launchBrowser();
    jupyter = await JupyterServer.start(overFake(scenario));
    jupyter.write('train.ipynb', notebookOf([FAILS]));
    jupyter.write('eval.ipynb', notebookOf([]));
    train = await jupyter.startKernel('train.ipynb');
    other = await jupyter.startKernel('eval.ipynb');
    const holds = (pid: number, memory: unknown): string =>
      `[[process]]\ngpu = 0\npid = ${String(pid)}\nmemory = ${JSON.stringify(memory)}\n`;
    const grown = (from_gib: number): unknown => [
      [0, `${String(from_gib)} GiB`],
      [200, `${String(from_gib + 100)} GiB`],
    ];
    writeFileSync(
      scenario,
      `[[gpu]]\nindex = 0\nmemory_used = ${JSON.stringify(grown(30))}\n` +
        holds(train.pid, grown(20)) +
        holds(other.pid, '7 GiB') +
        holds(process.pid, '2 GiB'),
    );
    // The first request starts gpumon, which remembers from then on.
    await fetch(jupyter.page('gpumon/healthz'));
  });
  beforeEach(async () => {
    ({ page, conduct } = await newPage(browser));
  });
  afterEach(async ({ task }) => {
    await closePage(page, task);
  });
  afterAll(async () => {
    await browser.close();
    await jupyter.stop();
  });

  for (const where of ['lab/tree', 'notebooks']) {
    it(`is explained below a cell that has failed until that runs again (${where})`, async () => {
      jupyter.write('mended', 'no');
      await page.goto(`${jupyter.page(`${where}/train.ipynb`)}&reset`);
      await kernelReady(page);
      const explained = async (): Promise<number> => {
        await run();
        await page.locator('.jp-OutputArea-output', { hasText: 'OutOfMemoryError' }).waitFor();
        return note().locator('li').count();
      };
      await expect.poll(explained).toBe(3);
      expect(await said(note())).toContain(
        'PyTorch asked for 22.8 GiB of GPU memory when 12.7 GiB of 140 GiB were free on GPU 0.',
      );
      const holders = note().locator('li');
      expect(await said(holders.nth(0))).toMatch(/^this notebook [\d.]+ GiB/);
      expect(await said(holders.nth(1))).toMatch(/^eval\.ipynb 7\.00 GiB/);
      // The test's own process is nobody's notebook: nothing can be done with it from here.
      expect(await said(holders.nth(2))).toMatch(/ \(\S+\) 2\.00 GiB$/);
      expect(await holders.nth(2).locator('button').count()).toBe(0);
      await holders.nth(1).locator('button').click();
      await page.locator('.lm-Menu-item', { hasText: 'Shut Down Kernel' }).waitFor();
      await page.keyboard.press('Escape');
      jupyter.write('mended', 'yes');
      await run();
      await note().waitFor({ state: 'detached' });
      expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
    });
  }

  it('is foretold, and the notebook that it is due to can be shut down, and no other is', async () => {
    await page.goto(`${jupyter.page('lab/tree/eval.ipynb')}&reset`);
    await new Lab(page).ready();
    const notification = page.locator('.jp-toastContainer .Toastify__toast', { hasText: 'GPU 0' });
    await notification.waitFor();
    const text = await said(notification.locator('.jp-toast-message'));
    expect(text).toMatch(/^GPU 0: memory full in about \d+ (min|s): train\.ipynb grows 0\.(49|5\d) GiB\/s\n/);
    expect(text).toMatch(/\nHeld by train\.ipynb [\d.]+ GiB, eval\.ipynb 7\.00 GiB/);
    expect(await page.locator('#gpumon-panel').isVisible()).toBe(false);
    // By its id it is known whether somebody has closed it.
    expect(await notification.getAttribute('id')).toMatch(/^[0-9a-f-]{36}$/);
    await notification.locator('button', { hasText: 'Shut Down' }).click();
    const dialog = page.locator('.jp-Dialog', { hasText: 'Shut down the kernel of train.ipynb?' });
    expect(isRunning(train.pid)).toBe(true);
    await dialog.locator('button', { hasText: 'Shut Down' }).click();
    await expect.poll(() => isRunning(train.pid)).toBe(false);
    expect(isRunning(other.pid)).toBe(true);
  });
});
