/**
 * The age of a sample when it becomes visible in each of two views of a page, and whether both
 * views always show the same sample.
 */

import type { Browser } from 'playwright-core';

import { formatNumber, median, percentile } from '../figures';
import { Gpus } from '../gpus';
import { OpenLab, startGpumon } from '../lab';
import { printNote, printRow } from '../rows';
import type { StreamCounts } from '../stream-tap';
import type { Bench } from './bench';

const TARGET_MS = 150;
/**
 * The number of samples, one per second. With so many, the 99th percentile is not just the maximum.
 */
const VALUES = 60;
const PATIENCE_MS = 240_000;

interface ViewAges {
  /** The ages of all samples, for each view. */
  ages_ms: number[][];
  frames: number;
  /** The number of frames in which the views showed different values. */
  unlike: number;
}

export async function measureViews({ browser }: Bench): Promise<void> {
  for (const count of [8, 64]) {
    const { ages_ms, frames, unlike } = await measureViewAges(browser, count);
    ['panel', 'charts'].forEach((view, i) => {
      const ages = ages_ms[i] ?? [];
      const p99 = percentile(ages, 99);
      const said = `${formatNumber(p99)} ms (median ${formatNumber(median(ages))}, ${ages.length} values)`;
      printRow(
        `age of the sample in the ${view} beside the other, p99, ${count} GPUs`,
        `<= ${TARGET_MS} ms`,
        said,
        p99 <= TARGET_MS,
      );
    });
    printRow(
      '  frames in which both show different totals',
      '0',
      `${unlike} of ${frames}`,
      unlike === 0,
    );
  }
  printNote(
    'from the complete sample to the frame after the one in which the totals of all GPUs were written',
  );
}

async function measureViewAges(browser: Browser, count: number): Promise<ViewAges> {
  const gpus = new Gpus(count);
  const jupyter = await startGpumon(gpus);
  try {
    const lab = await OpenLab.open(browser, jupyter);
    await lab.showPanel();
    await lab.showDashboards();
    await lab.page.evaluate(watchTotals);
    await lab.page.waitForFunction(
      (enough) => {
        const { gpumonSeen } = window as unknown as { gpumonSeen: ViewAges };
        return gpumonSeen.ages_ms.every((ages) => ages.length >= enough);
      },
      VALUES,
      { timeout: PATIENCE_MS, polling: 1000 },
    );
    const seen = await lab.page.evaluate(
      () => (window as unknown as { gpumonSeen: ViewAges }).gpumonSeen,
    );
    await lab.close();
    return seen;
  } finally {
    await jupyter.stop();
    gpus.end();
  }
}

/** Runs in the page: observes the totals of both views, which change with each sample. */
function watchTotals(): void {
  const totals = [...document.querySelectorAll('[data-testid="gpumon-summary"]')];
  if (totals.length !== 2) {
    throw new Error(`there are ${totals.length} views`);
  }
  const tap = (window as unknown as { gpumonTap: StreamCounts }).gpumonTap;
  const seen: ViewAges = { ages_ms: totals.map(() => []), frames: 0, unlike: 0 };
  totals.forEach((total, i) => {
    new MutationObserver(() => {
      const { at_ms } = tap;
      // The value is written before a frame is drawn, so it is visible when the next frame begins.
      requestAnimationFrame(() => seen.ages_ms[i]?.push(Date.now() - at_ms));
    }).observe(total, { characterData: true, childList: true, subtree: true });
  });
  const look = (): void => {
    seen.frames += 1;
    seen.unlike += Number(totals[0]?.textContent !== totals[1]?.textContent);
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
  Object.assign(window, { gpumonSeen: seen });
}
