/**
 * The load of the browser's main thread with eight GPUs at ten samples per second, and all charts
 * open.
 */

import type { Browser } from 'playwright-core';

import { formatNumber } from '../figures';
import { FAST_DRIVER, Gpus } from '../gpus';
import { OpenLab, PEER, startPeer } from '../lab';
import { measureCost, type Cost } from '../main-thread';
import { printNote, printRow } from '../rows';
import type { Bench } from './bench';

const TARGET_PERCENT = 5;

export async function measureEightGpus({ browser, gpumon, seconds }: Bench): Promise<void> {
  const own = await OpenLab.open(browser, gpumon, 100);
  const idle = await measureCost(own, browser, seconds / 2, 'idle');
  await own.showPanel();
  const panel = await measureCost(own, browser, seconds, 'eight-gpus-panel');
  const more = await own.showDashboards();
  const all = more ? await measureCost(own, browser, seconds, 'eight-gpus-all') : panel;
  await own.close();

  const other = await peerCost(browser, seconds);

  const ok = all.percent <= TARGET_PERCENT;
  printRow(
    'browser main thread, 8 GPUs at 10 Hz, all charts open',
    `<= ${TARGET_PERCENT} % of a core`,
    formatCost(all),
    ok,
  );
  printRow(
    '  the panel alone, with the charts of all its cards',
    '',
    more ? formatCost(panel) : 'the same: there are no others',
  );
  printRow('  JupyterLab before anything is open', '', formatCost(idle));
  printRow(
    `  one chart of ${PEER}`,
    '',
    `${formatCost(other)}; ${formatNumber(other.percent / all.percent)} times gpumon's`,
  );
  printNote(
    'the peer over a driver that answers at once, since it waits for a real one, and then draws less',
  );
  printNote(
    'TaskDuration in processor time of the thread; painting by threads beside it is in "the browser"',
  );
}

/**
 * Measures one chart of the peer with a driver that answers immediately. With a slow driver, the
 * peer would wait and draw less.
 */
async function peerCost(browser: Browser, seconds: number): Promise<Cost> {
  const gpus = new Gpus(8, FAST_DRIVER);
  const peer = await startPeer(gpus);
  try {
    const lab = await OpenLab.open(browser, peer);
    await lab.showPeerChart('GPU Resources');
    const cost = await measureCost(lab, browser, seconds, 'peer');
    await lab.close();
    return cost;
  } finally {
    await peer.stop();
    gpus.end();
  }
}

/** Formats a cost as text. */
export function formatCost({
  percent,
  script_percent,
  layout_percent,
  browser_percent,
  updates,
}: Cost): string {
  const rate = updates > 0 ? `, ${formatNumber(updates)} updates/s` : '';
  const parts = `scripts ${formatNumber(script_percent)}, layout ${formatNumber(layout_percent)}`;
  return `${formatNumber(percent)} % (${parts}; the browser ${formatNumber(browser_percent)} %${rate})`;
}
