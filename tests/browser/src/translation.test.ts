/** The panel and charts in a JupyterLab that speaks another language. */

import { readFileSync, writeFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';
import path from 'node:path';

import type { Browser, Page } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';

import { forgotten, textsOf } from '../../../static/src/testing/accents';
import { closePage, launchBrowser, newPage } from './browser';
import { Charts } from './charts';
import { JupyterServer, type KernelSession } from './jupyter';
import { Lab } from './lab';
import { speakAccented } from './language';
import { newFolder, overFake } from './machine';
import { notebookOf } from './notebook-file';
import { View } from './view';

describe('the panel in another language', () => {
  let browser: Browser;
  let jupyter: JupyterServer;
  let kernel: KernelSession;
  let page: Page;
  const scenario = path.join(newFolder(), 'scenario.toml');

  beforeAll(async () => {
    browser = await launchBrowser();
    jupyter = await JupyterServer.start(overFake(scenario));
    jupyter.write('train.ipynb', notebookOf([]));
    kernel = await jupyter.startKernel('train.ipynb');
    writeFileSync(
      scenario,
      '[[gpu]]\nindex = 0\nutilization_percent = 50\n[[gpu]]\nindex = 1\n[[gpu]]\nindex = 2\nprofile = "training"\n' +
        `[[process]]\ngpu = 0\npid = ${String(kernel.pid)}\nsm_percent = 50\nmemory = "10 GiB"\n` +
        '[[fault]]\ngpu = 1\nkind = "lost"\nfrom_s = 0\n',
    );
  });
  beforeEach(async () => {
    ({ page } = await newPage(browser));
    await speakAccented(page);
    await new Lab(page).open(`${jupyter.page('lab')}&reset`);
  });
  afterEach(async ({ task }) => {
    await closePage(page, task);
  });
  afterAll(async () => {
    await browser.close();
    await jupyter.stop();
  });

  it('shows no English word of its own, nor do charts', async () => {
    const lab = new Lab(page);
    await lab.showPanel();
    await new View(page).live();
    await lab.panel.locator('[data-gpu-index="0"] .gpumon-toggle').click();
    await lab.panel.locator('[data-gpu-index="0"] .gpumon-more').click();
    await lab.panel.locator('[data-gpu-health=lost]').waitFor();
    await lab.panel.locator('[data-gpu-index="0"] .gpumon-open').click();
    const charts = new Charts(page);
    await charts.live();
    const texts = async (): Promise<string[]> => [
      ...(await lab.panel.evaluate(textsOf)),
      ...(await charts.root.evaluate(textsOf)),
    ];
    await expect.poll(async () => (await texts()).length).toBeGreaterThan(300);
    const shown = await texts();
    const command = readFileSync(`/proc/${String(kernel.pid)}/cmdline`, 'utf8')
      .replaceAll('\0', ' ')
      .trim();
    const data = [command, 'train.ipynb', 'NVIDIA', 'Hopper', 'sm', 'gpumon', hostname(), userInfo().username];
    expect(forgotten(shown, data)).toEqual([]);
  });
});
