/**
 * The load of the browser's main thread with eight GPUs at ten samples per second, and all charts
 * open.
 */

import type { Browser } from 'playwright-core';

import { digits } from '../figures';
import { AT_ONCE, Gpus } from '../gpus';
import { OpenLab, PEER, startPeer } from '../lab';
import { costOf, type Cost } from '../main-thread';
import { note, row } from '../rows';
import type { Bench } from './bench';

const TARGET_PERCENT = 5;

export async function eightGpus({ browser, gpumon, seconds }: Bench): Promise<void> {
  const own = await OpenLab.open(browser, gpumon, 100);
  const idle = await costOf(own, browser, seconds / 2, 'idle');
  await own.showPanel();
  const panel = await costOf(own, browser, seconds, 'eight-gpus-panel');
  const more = await own.showDashboards();
  const all = more ? await costOf(own, browser, seconds, 'eight-gpus-all') : panel;
  await own.close();

  const other = await peerCost(browser, seconds);

  const ok = all.percent <= TARGET_PERCENT;
  row(
    'browser main thread, 8 GPUs at 10 Hz, all charts open',
    `<= ${TARGET_PERCENT} % of a core`,
    said(all),
    ok,
  );
  row(
    '  the panel alone, with the charts of all its cards',
    '',
    more ? said(panel) : 'the same: there are no others',
  );
  row('  JupyterLab before anything is open', '', said(idle));
  row(
    `  one chart of ${PEER}`,
    '',
    `${said(other)}; ${digits(other.percent / all.percent)} times gpumon's`,
  );
  note(
    'the peer over a driver that answers at once, since it waits for a real one, and then draws less',
  );
  note(
    'TaskDuration in processor time of the thread; painting by threads beside it is in "the browser"',
  );
}

/**
 * Measures one chart of the peer with a driver that answers at once. With a slow driver, the peer
 * would wait and draw less.
 */
async function peerCost(browser: Browser, seconds: number): Promise<Cost> {
  const gpus = new Gpus(8, AT_ONCE);
  const peer = await startPeer(gpus);
  try {
    const lab = await OpenLab.open(browser, peer);
    await lab.showPeer('GPU Resources');
    const cost = await costOf(lab, browser, seconds, 'peer');
    await lab.close();
    return cost;
  } finally {
    await peer.stop();
    gpus.end();
  }
}

/** Formats a cost as text. */
export function said({
  percent,
  script_percent,
  layout_percent,
  browser_percent,
  updates,
}: Cost): string {
  const rate = updates > 0 ? `, ${digits(updates)} updates/s` : '';
  const parts = `scripts ${digits(script_percent)}, layout ${digits(layout_percent)}`;
  return `${digits(percent)} % (${parts}; the browser ${digits(browser_percent)} %${rate})`;
}
