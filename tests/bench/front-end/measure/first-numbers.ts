/**
 * The time from a click until the panel shows numbers, and until it first shows a line chart of the
 * history.
 */

import type { Browser } from 'playwright-core';

import { formatNumber, median } from '../figures';
import { Gpus } from '../gpus';
import { OpenLab, startGpumon } from '../lab';
import { printNote, printRow } from '../rows';
import type { Bench } from './bench';

const TARGETS_MS: readonly [gpus: number, target_ms: number][] = [
  [1, 200],
  [64, 300],
];
const REPETITIONS = 7;

interface PaintTimes {
  numbers_ms: number;
  /** `null` with many GPUs, because their rows have no line charts. */
  line_ms: number | null;
}

export async function measureFirstNumbers({ browser }: Bench): Promise<void> {
  for (const [gpus, target_ms] of TARGETS_MS) {
    const seen = await measurePaintTimes(browser, gpus);
    const numbers = seen.map(({ numbers_ms }) => numbers_ms);
    const worst = Math.max(...numbers);
    const name = `click on the panel to numbers of all GPUs that are seen, ${gpus} GPU${gpus > 1 ? 's' : ''}`;
    printRow(name, `<= ${target_ms} ms`, formatTimes(numbers), worst <= target_ms);
    const lines = seen.flatMap(({ line_ms }) => line_ms ?? []);
    if (lines.length > 0) {
      printRow('  to the first line of its history', '', formatTimes(lines));
    }
  }
  printNote(
    'to the frame after; in a fresh page each time, whose code is not cached; gpumon runs already',
  );
}

function formatTimes(took: readonly number[]): string {
  return `${formatNumber(Math.max(...took))} ms at worst of ${REPETITIONS} (median ${formatNumber(median(took))})`;
}

async function measurePaintTimes(browser: Browser, count: number): Promise<PaintTimes[]> {
  const gpus = new Gpus(count);
  const jupyter = await startGpumon(gpus);
  const seen: PaintTimes[] = [];
  try {
    // The first request starts gpumon, which then records history for the measurements.
    await fetch(jupyter.pageUrl('gpumon/healthz'));
    for (let time = 0; time < REPETITIONS; time += 1) {
      const lab = await OpenLab.open(browser, jupyter);
      await lab.page.evaluate(observeFirstNumbers, count === 1);
      await lab.page.locator('.jp-SideBar.jp-mod-left [data-id="gpumon-panel"]').click();
      const waited = lab.page.waitForFunction(
        () => (window as unknown as { gpumonSeen?: PaintTimes }).gpumonSeen,
      );
      seen.push((await (await waited).jsonValue()) ?? { numbers_ms: Infinity, line_ms: null });
      await lab.close();
    }
  } finally {
    await jupyter.stop();
    gpus.end();
  }
  return seen;
}

/**
 * Runs in the page: after the next click, checks each frame for numbers, and for a canvas with a
 * line.
 */
function observeFirstNumbers(withLine: boolean): void {
  /** A line that is not straight has at least this many different heights. */
  const HEIGHTS = 10;
  const hasLine = (canvas: HTMLCanvasElement): boolean => {
    const { width, height } = canvas;
    const pixels =
      width * height === 0 ? null : canvas.getContext('2d')?.getImageData(0, 0, width, height).data;
    const tops = new Set<number>();
    for (let x = 0; x < width; x += 1) {
      for (let y = 0; y < height; y += 1) {
        if ((pixels?.[4 * (y * width + x) + 3] ?? 0) > 0) {
          tops.add(y);
          break;
        }
      }
    }
    return tops.size >= HEIGHTS;
  };
  const hasNumbers = (): boolean => {
    const values = [
      ...document.querySelectorAll('#gpumon-panel [data-reading="power.draw_watts"]'),
    ].filter((value) => value.getBoundingClientRect().top < innerHeight);
    return values.length > 0 && values.every(({ textContent }) => /\d/.test(textContent));
  };
  const begin = (clicked_ms: number): void => {
    let numbers_ms: number | null = null;
    const look = (): void => {
      const since_ms = performance.now() - clicked_ms;
      numbers_ms ??= hasNumbers() ? since_ms : null;
      const line =
        withLine &&
        [...document.querySelectorAll<HTMLCanvasElement>('#gpumon-panel canvas')].some(hasLine);
      if (numbers_ms === null || (withLine && !line)) {
        requestAnimationFrame(look);
      } else {
        // The values were written before this frame began, so this frame shows them.
        Object.assign(window, { gpumonSeen: { numbers_ms, line_ms: withLine ? since_ms : null } });
      }
    };
    requestAnimationFrame(look);
  };
  document.addEventListener('click', () => begin(performance.now()), { capture: true, once: true });
}
