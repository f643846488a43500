/**
 * The size of the JavaScript that a browser downloads, compressed in the same way as by a server.
 */

import { MAX_EARLY_KB, downloadedKilobytes } from '../../../browser/src/downloads';
import { notebookOf } from '../../../browser/src/notebook-file';
import { OpenLab, PEER } from '../lab';
import { printRow } from '../rows';
import type { Bench } from './bench';

const TOTAL_TARGET_KB = 70;

export async function measureDownloads({ browser, gpumon, peer }: Bench): Promise<void> {
  gpumon.write('measured.ipynb', notebookOf(['print("done")']));
  const own = await OpenLab.open(browser, gpumon);
  const before = await downloadedKilobytes(own.page, 'gpumon');
  await own.showPanel();
  await own.showDashboards();
  await own.page.evaluate(
    (url) => history.replaceState(null, '', url),
    gpumon.pageUrl('lab/tree/measured.ipynb'),
  );
  await own.page.reload();
  await own.page
    .locator('.jp-NotebookPanel-toolbar [data-testid=gpumon-chip]')
    .waitFor({ state: 'attached' });
  await own.page.waitForLoadState('networkidle');
  const all = await downloadedKilobytes(own.page, 'gpumon');
  await own.close();

  const other = await OpenLab.open(browser, peer);
  const peerBefore = await downloadedKilobytes(other.page, 'jupyterlab-nvdashboard');
  await other.showPeerChart(null);
  const peerAll = await downloadedKilobytes(other.page, 'jupyterlab-nvdashboard');
  await other.close();

  printRow(
    'JavaScript before the panel is opened, gzipped',
    `<= ${MAX_EARLY_KB} KB`,
    formatKilobytes(before),
    before <= MAX_EARLY_KB,
  );
  printRow(
    '  in all, with panel, charts and a notebook',
    `<= ${TOTAL_TARGET_KB} KB`,
    formatKilobytes(all),
    all <= TOTAL_TARGET_KB,
  );
  printRow(
    `  the same of ${PEER}`,
    '',
    `${formatKilobytes(peerBefore)}, ${formatKilobytes(peerAll)}`,
  );
}

function formatKilobytes(kb: number): string {
  return `${kb.toFixed(1)} KB`;
}
