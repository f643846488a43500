/** Tests of the panel and the charts in a JupyterLab with another language. */

import { readFileSync } from 'node:fs';
import { hostname, userInfo } from 'node:os';

import { describe, expect } from 'vitest';

import { findUntranslated, textsOf } from '../../../static/src/testing/pseudo-locale';
import { it } from './fixtures';
import { usePseudoLocale } from './language';
import { notebookOf } from './notebook-file';

describe('panel in another language', () => {
  it('panel and charts are completely translated', async ({
    scripted,
    page,
    lab,
    view,
    charts,
  }) => {
    scripted.write('train.ipynb', notebookOf([]));
    const kernel = await scripted.startKernel('train.ipynb');
    await scripted.restartWithScenario(
      '[[gpu]]\nindex = 0\nutilization_percent = 50\n[[gpu]]\nindex = 1\n[[gpu]]\nindex = 2\nprofile = "training"\nthrottle_reasons = []\n' +
        `[[process]]\ngpu = 0\npid = ${kernel.pid}\nsm_percent = 50\nmemory = "10 GiB"\n` +
        '[[fault]]\ngpu = 1\nkind = "lost"\nfrom_s = 0\n',
    );
    await usePseudoLocale(page);
    await lab.open(`${scripted.pageUrl('lab')}&reset`);
    await lab.showPanel();
    await view.waitUntilLive();
    await lab.panel.locator('[data-gpu-index="0"] .gpumon-toggle').click();
    await lab.panel.locator('[data-gpu-index="0"] .gpumon-more').click();
    await lab.panel.locator('[data-gpu-health=lost]').waitFor();
    await lab.panel.locator('[data-gpu-index="0"] .gpumon-open').click();
    await charts.waitUntilLive();
    const texts = async (): Promise<string[]> => [
      ...(await lab.panel.evaluate(textsOf)),
      ...(await charts.root.evaluate(textsOf)),
    ];
    await expect.poll(async () => (await texts()).length).toBeGreaterThan(300);
    const shown = await texts();
    const command = readFileSync(`/proc/${kernel.pid}/cmdline`, 'utf8')
      .replaceAll('\0', ' ')
      .trim();
    const option = 'gpumon serve --data-dir DIR';
    // The charts also list cells of notebooks from other tests. The names of these notebooks are
    // not translated.
    const notebooks = shown.flatMap((text) => text.match(/[\w-]+\.ipynb/g) ?? []);
    const data = [
      command,
      option,
      ...notebooks,
      'NVIDIA',
      'Hopper',
      'sm',
      'gpumon',
      hostname(),
      userInfo().username,
    ];
    expect(findUntranslated(shown, data)).toEqual([]);
  });
});
