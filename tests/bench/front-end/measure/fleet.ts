/**
 * The time until a page shows the first picture of a fleet of thousands of GPUs, and until it shows
 * the result of a filter. The server sends prepared answers.
 */

import type { Browser, Page } from 'playwright-core';

import { generateFleet } from '../../../../static/src/testing/fleet';
import { newPage } from '../../../browser/src/browser';
import { FakeFleet } from '../../../browser/src/fake-fleet';
import { formatNumber, median, percentile } from '../figures';
import { printNote, printRow } from '../rows';
import type { Bench } from './bench';

const FILTER_TARGET_MS = 100;
const PAGE_LOADS = 7;
/** Filters that are typed letter by letter. */
const FILTER_TEXTS = ['ana', 'h200 busy', 'memory>80GiB', 'node-01', 'idle>1h -h100', 'xid', ''];

/**
 * The fleets that are measured. One is shown by GPU, and the other by node, with one cell for each
 * of its 10,000 nodes.
 */
const FLEETS = [
  { name: '1,000 nodes of 8 GPUs', target_ms: 1000, made: { nodes: 1000, gpus: 8 } },
  {
    name: '10,000 nodes of 8 GPUs, by node',
    target_ms: 2000,
    made: { nodes: 10_000, gpus: 8, byNode: true },
  },
] as const;

export async function measureFleet({ browser }: Pick<Bench, 'browser'>): Promise<void> {
  for (const { name, target_ms, made } of FLEETS) {
    const server = await FakeFleet.start(generateFleet({ ...made, at_ms: Date.now() }));
    try {
      const opened = await measureFirstPictures(browser, server);
      const slowest = percentile(opened, 100);
      printRow(
        `fleet of ${name}: first picture`,
        `<= ${target_ms} ms`,
        formatTimes(opened),
        slowest <= target_ms,
      );
      for (const view of ['map', 'gpus'] as const) {
        const { times, own_ms } = await measureFilters(browser, server, view);
        const isFast = percentile(times, 99) <= FILTER_TARGET_MS;
        printRow(
          `  from a key in the filter to the picture, ${view}`,
          `<= ${FILTER_TARGET_MS} ms`,
          formatTimes(times),
          isFast,
        );
        printRow(
          "    of that, the page's own time of a processor",
          '',
          `${formatNumber(own_ms)} ms on average`,
        );
      }
    } finally {
      await server.stop();
    }
  }
  printNote(
    'from navigation, and from the event, to the frame after the one in which the page drew; without a network between',
  );
}

async function measureFirstPictures(browser: Browser, server: FakeFleet): Promise<number[]> {
  const { page } = await newPage(browser);
  await page.addInitScript(() => {
    const look = (): void => {
      const isThere = document.querySelector(
        '[data-testid=gpumon-fleet][data-state=live] .gpumon-map > canvas',
      );
      if (isThere instanceof HTMLCanvasElement && isThere.height > 150) {
        // The picture is on the screen when the next frame begins.
        requestAnimationFrame((at_ms) => Object.assign(window, { gpumonDrawn: at_ms }));
      } else {
        requestAnimationFrame(look);
      }
    };
    requestAnimationFrame(look);
  });
  const times: number[] = [];
  // The first page load includes the start of the browser, so it is not counted.
  for (let i = 0; i <= PAGE_LOADS; i += 1) {
    await page.goto('about:blank');
    await page.goto(`${server.url}#fleet`);
    const drawn = await page.waitForFunction(
      () => (window as unknown as { gpumonDrawn?: number }).gpumonDrawn,
    );
    times.push((await drawn.jsonValue()) ?? NaN);
  }
  await page.context().close();
  return times.slice(1);
}

async function measureFilters(
  browser: Browser,
  server: FakeFleet,
  view: string,
): Promise<{ times: number[]; own_ms: number }> {
  const { page } = await newPage(browser);
  await page.goto(`${server.url}#fleet?view=${view}`);
  await page.locator('[data-testid=gpumon-fleet][data-state=live]').waitFor();
  const cdp = await page.context().newCDPSession(page);
  await cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const busy_s = async (): Promise<number> => {
    const { metrics } = await cdp.send('Performance.getMetrics');
    return metrics.find(({ name }) => name === 'TaskDuration')?.value ?? NaN;
  };
  const before_s = await busy_s();
  const times: number[] = [];
  for (const text of FILTER_TEXTS) {
    for (let end = Math.min(1, text.length); end <= text.length; end += 1) {
      times.push(await measureFilter(page, text.slice(0, end)));
    }
  }
  const own_ms = (((await busy_s()) - before_s) * 1000) / times.length;
  await page.context().close();
  return { times, own_ms };
}

async function measureFilter(page: Page, text: string): Promise<number> {
  return page.evaluate(async (typed) => {
    const input = document.querySelector('.gpumon-fleet-filter');
    if (!(input instanceof HTMLInputElement)) {
      throw new Error('there is no filter');
    }
    await new Promise((resolve) => setTimeout(resolve, 100));
    const begun_ms = performance.now();
    input.value = typed;
    input.dispatchEvent(new Event('input', { bubbles: true }));
    // The page draws in the first frame after the change, and the picture is visible when the
    // second frame begins.
    await new Promise(requestAnimationFrame);
    await new Promise(requestAnimationFrame);
    return performance.now() - begun_ms;
  }, text);
}

function formatTimes(times: readonly number[]): string {
  return `median ${formatNumber(median(times))} ms, at most ${formatNumber(percentile(times, 100))} (${times.length} times)`;
}
