/**
 * Tests of GPU memory that runs out: real kernels whose memory is scripted by the fake library, and
 * errors in PyTorch's format.
 */

import type { Locator } from 'playwright-core';
import { describe, expect } from 'vitest';

import { it as base } from './fixtures';
import { waitForIdleKernel, Lab, runCell } from './lab';
import { notebookOf } from './notebook-file';
import { isRunning } from './processes';

const FAILING_CODE = `class OutOfMemoryError(RuntimeError):
    pass
if open("mended").read() == "no":
    raise OutOfMemoryError(
        "CUDA out of memory. Tried to allocate 22.78 GiB. GPU 0 has a total capacity of 139.81 GiB of which 12.73 GiB "
        "is free. Including non-PyTorch memory, this process has 18.73 GiB memory in use. Of the allocated memory "
        "9.08 GiB is allocated by PyTorch, and 9.35 GiB is reserved by PyTorch but unallocated.")`;

const holds = (pid: number, memory: unknown): string =>
  `[[process]]\ngpu = 0\npid = ${pid}\nmemory = ${JSON.stringify(memory)}\n`;
const grown = (from_gib: number): unknown => [
  [0, `${from_gib} GiB`],
  [200, `${String(from_gib + 100)} GiB`],
];

/** Two notebooks with kernels. The memory of the first one grows from the start of the test. */
const it = base.extend('kernels', { auto: true }, async ({ scripted }) => {
  scripted.write('train.ipynb', notebookOf([FAILING_CODE]));
  scripted.write('eval.ipynb', notebookOf([]));
  const train = await scripted.startKernel('train.ipynb');
  const other = await scripted.startKernel('eval.ipynb');
  await scripted.restartWithScenario(
    `[[gpu]]\nindex = 0\nmemory_used = ${JSON.stringify(grown(30))}\n` +
      holds(train.pid, grown(20)) +
      holds(other.pid, '7 GiB') +
      holds(process.pid, '2 GiB'),
  );
  return { train, other };
});

async function readText(locator: Locator): Promise<string> {
  return (await locator.innerText()).replaceAll('\u00a0', ' ');
}

describe('GPU memory that runs out', () => {
  for (const where of ['lab/tree', 'notebooks']) {
    it(`failed cell is explained until next run (${where})`, async ({
      scripted,
      page,
      conduct,
    }) => {
      const note = page.getByTestId('gpumon-oom');
      scripted.write('mended', 'no');
      await page.goto(`${scripted.pageUrl(`${where}/train.ipynb`)}&reset`);
      await waitForIdleKernel(page);
      const explained = async (): Promise<number> => {
        await runCell(page);
        await page.locator('.jp-OutputArea-output', { hasText: 'OutOfMemoryError' }).waitFor();
        return note.locator('li').count();
      };
      await expect.poll(explained).toBe(3);
      expect(await readText(note)).toContain(
        'PyTorch requested 22.8 GiB of GPU memory with 12.7 GiB of 140 GiB free on GPU 0.',
      );
      const holders = note.locator('li');
      expect(await readText(holders.nth(0))).toMatch(/^this notebook [\d.]+ GiB/);
      expect(await readText(holders.nth(1))).toMatch(/^eval\.ipynb 7\.00 GiB/);
      // The third holder is the test process. It does not belong to a notebook, so it has no
      // actions.
      expect(await readText(holders.nth(2))).toMatch(/ \(\S+\) 2\.00 GiB$/);
      expect(await holders.nth(2).locator('button').count()).toBe(0);
      await holders.nth(1).locator('button').click();
      await page.locator('.lm-Menu-item', { hasText: 'Shut Down Kernel' }).waitFor();
      await page.keyboard.press('Escape');
      scripted.write('mended', 'yes');
      await runCell(page);
      await note.waitFor({ state: 'detached' });
      expect(conduct.errors.filter((error) => error.includes('gpumon'))).toEqual([]);
    });
  }

  it('forecast offers to shut down its notebook', async ({
    kernels: { train, other },
    scripted,
    page,
  }) => {
    await page.goto(`${scripted.pageUrl('lab/tree/eval.ipynb')}&reset`);
    await new Lab(page).waitUntilReady();
    const notification = page.locator('.jp-toastContainer .Toastify__toast', { hasText: 'GPU 0' });
    await notification.waitFor();
    const text = await readText(notification.locator('.jp-toast-message'));
    expect(text).toMatch(
      /^GPU 0: Memory full in about \d+ (min|s): train\.ipynb grows 0\.(49|5\d) GiB\/s\n/,
    );
    expect(text).toMatch(/\nHeld by train\.ipynb [\d.]+ GiB, eval\.ipynb 7\.00 GiB/);
    expect(await page.locator('#gpumon-panel').isVisible()).toBe(false);
    // The panel uses this ID to find out whether a user has closed the notification.
    expect(await notification.getAttribute('id')).toMatch(/^[0-9a-f-]{36}$/);
    await notification.locator('button', { hasText: 'Shut Down' }).click();
    const dialog = page.locator('.jp-Dialog', { hasText: 'Shut down the kernel of train.ipynb?' });
    expect(isRunning(train.pid)).toBe(true);
    await dialog.locator('button', { hasText: 'Shut Down' }).click();
    await expect.poll(() => isRunning(train.pid)).toBe(false);
    expect(isRunning(other.pid)).toBe(true);
  });
});
