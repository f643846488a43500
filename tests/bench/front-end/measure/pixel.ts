/**
 * The age of a value when it becomes visible: from the driver's answer to the frame after the value
 * is written into the page.
 */

import { formatNumber, median, percentile } from '../figures';
import { OpenLab } from '../lab';
import { printNote, printRow } from '../rows';
import type { StreamCounts } from '../stream-tap';
import type { Bench } from './bench';

const TARGET_MS = 100;
/** The number of values. With so many, the 99th percentile is not just the maximum. */
const VALUES = 300;
const PATIENCE_MS = 240_000;

/**
 * Two ages of one value: the time since its GPU was read, and the time since the sample of all GPUs
 * was complete.
 */
type Ages = [read_ms: number, complete_ms: number];

export async function measurePixelAge({ browser, gpumon }: Bench): Promise<void> {
  const lab = await OpenLab.open(browser, gpumon, 100);
  await lab.showPanel();
  await lab.page.evaluate(() => {
    const seen: Ages[] = [];
    const tap = (window as unknown as { gpumonTap: StreamCounts }).gpumonTap;
    const value = document.querySelector(
      '#gpumon-panel [data-gpu-index="0"] [data-reading="power.draw_watts"]',
    );
    if (value === null) {
      throw new Error('there is no such value');
    }
    new MutationObserver(() => {
      const { at_ms, gpu_at_ms } = tap;
      // The value is written before a frame is drawn, so it is visible when the next frame begins.
      requestAnimationFrame(() => seen.push([Date.now() - gpu_at_ms, Date.now() - at_ms]));
    }).observe(value, { characterData: true, childList: true, subtree: true });
    Object.assign(window, { gpumonSeen: seen });
  });
  await lab.page.waitForFunction(
    (enough) => (window as unknown as { gpumonSeen: Ages[] }).gpumonSeen.length >= enough,
    VALUES,
    { timeout: PATIENCE_MS, polling: 1000 },
  );
  const seen = await lab.page.evaluate(
    () => (window as unknown as { gpumonSeen: Ages[] }).gpumonSeen,
  );
  await lab.close();
  const [read, complete] = [seen.map(([age]) => age), seen.map(([, age]) => age)];
  const p99 = percentile(read, 99);
  printRow(
    'NVML read to pixel, p99, 8 GPUs at 10 Hz',
    `<= ${TARGET_MS} ms`,
    formatAges(read),
    p99 <= TARGET_MS,
  );
  printRow('  of that, after the sample of all GPUs was complete', '', formatAges(complete));
  printNote(
    'from the at_ms of the first GPU to the frame after the one in which its power was written',
  );
}

function formatAges(ages: readonly number[]): string {
  return `${formatNumber(percentile(ages, 99))} ms (median ${formatNumber(median(ages))}, ${ages.length} values)`;
}
