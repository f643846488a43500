/** The JavaScript that a browser fetches, as a server would send it compressed. */

import { gzipSync } from 'node:zlib';

import type { Page } from 'playwright-core';

import { notebookOf } from '../../../browser/src/notebook-file';
import { OpenLab, PEER } from '../lab';
import { row } from '../rows';
import type { Bench } from './bench';

const BEFORE_KB = 5;
const IN_ALL_KB = 70;

export async function bytes({ browser, gpumon, peer }: Bench): Promise<void> {
  gpumon.write('measured.ipynb', notebookOf(['print("done")']));
  const own = await OpenLab.open(browser, gpumon);
  const before = await kilobytes(own.page, 'gpumon');
  await own.showPanel();
  await own.showDashboards();
  await own.page.evaluate((url) => {
    history.replaceState(null, '', url);
  }, gpumon.page('lab/tree/measured.ipynb'));
  await own.page.reload();
  await own.page.locator('.jp-NotebookPanel-toolbar [data-testid=gpumon-chip]').waitFor({ state: 'attached' });
  await own.page.waitForLoadState('networkidle');
  const all = await kilobytes(own.page, 'gpumon');
  await own.close();

  const other = await OpenLab.open(browser, peer);
  const peerBefore = await kilobytes(other.page, 'jupyterlab-nvdashboard');
  await other.showPeer(null);
  const peerAll = await kilobytes(other.page, 'jupyterlab-nvdashboard');
  await other.close();

  row(
    'JavaScript before the panel is opened, gzipped',
    `<= ${String(BEFORE_KB)} KB`,
    said(before),
    before <= BEFORE_KB,
  );
  row('  in all, with panel, charts and a notebook', `<= ${String(IN_ALL_KB)} KB`, said(all), all <= IN_ALL_KB);
  row(`  the same of ${PEER}`, '', `${said(peerBefore)}, ${said(peerAll)}`);
}

/** What this page has fetched of an extension, each file once. */
async function kilobytes(page: Page, extension: string): Promise<number> {
  const urls = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name));
  const own = new Set(urls.filter((url) => url.includes(`/lab/extensions/${extension}/`) && /\.js(\?|$)/.test(url)));
  const sizes = [...own].map(async (url) => {
    const response = await page.request.get(url);
    return gzipSync(await response.body(), { level: 9 }).length;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0) / 1000;
}

function said(kb: number): string {
  return `${kb.toFixed(1)} KB`;
}
