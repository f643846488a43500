/** The size of the JavaScript that a browser downloads, compressed as by a server. */

import { BEFORE_KB, kilobytes } from '../../../browser/src/downloads';
import { notebookOf } from '../../../browser/src/notebook-file';
import { OpenLab, PEER } from '../lab';
import { row } from '../rows';
import type { Bench } from './bench';

const IN_ALL_KB = 70;

export async function bytes({ browser, gpumon, peer }: Bench): Promise<void> {
  gpumon.write('measured.ipynb', notebookOf(['print("done")']));
  const own = await OpenLab.open(browser, gpumon);
  const before = await kilobytes(own.page, 'gpumon');
  await own.showPanel();
  await own.showDashboards();
  await own.page.evaluate(
    (url) => history.replaceState(null, '', url),
    gpumon.page('lab/tree/measured.ipynb'),
  );
  await own.page.reload();
  await own.page
    .locator('.jp-NotebookPanel-toolbar [data-testid=gpumon-chip]')
    .waitFor({ state: 'attached' });
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
    `<= ${BEFORE_KB} KB`,
    said(before),
    before <= BEFORE_KB,
  );
  row(
    '  in all, with panel, charts and a notebook',
    `<= ${IN_ALL_KB} KB`,
    said(all),
    all <= IN_ALL_KB,
  );
  row(`  the same of ${PEER}`, '', `${said(peerBefore)}, ${said(peerAll)}`);
}

function said(kb: number): string {
  return `${kb.toFixed(1)} KB`;
}
