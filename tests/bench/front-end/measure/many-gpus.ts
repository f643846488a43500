/**
 * The load of the main thread with 64 GPUs at one sample per second, and the smoothness of
 * scrolling in the panel.
 */

import type { Browser } from 'playwright-core';

import { formatNumber, median, percentile } from '../figures';
import { Gpus } from '../gpus';
import { OpenLab, startGpumon } from '../lab';
import { measureCost } from '../main-thread';
import { printNote, printRow } from '../rows';
import type { Bench } from './bench';
import { formatCost } from './eight-gpus';

const GPUS = 64;
const TARGET_PERCENT = 5;
/** The frame rate of a 60 Hz screen, with a tolerance for the clock's resolution. */
const TARGET_FPS = 59;
const SCROLL_PX = 3000;
const PX_PER_SECOND = 1000;
/** The name of a drawn frame in Chromium's trace. */
const DRAWN_FRAME = 'ProxyImpl::ScheduledActionDraw';

export async function measureManyGpus({ browser, seconds }: Bench): Promise<void> {
  const gpus = new Gpus(GPUS);
  const jupyter = await startGpumon(gpus);
  try {
    const lab = await OpenLab.open(browser, jupyter);
    await lab.showPanel();
    const cost = await measureCost(lab, browser, seconds, 'sixty-four-gpus');
    const name = `browser main thread, ${GPUS} GPUs at 1 Hz`;
    printRow(
      name,
      `<= ${TARGET_PERCENT} % of a core`,
      formatCost(cost),
      cost.percent <= TARGET_PERCENT,
    );
    const { drawn, own_ms } = await scroll(lab, browser);
    printRow(
      '  frames a second on the screen while the panel is scrolled',
      '60',
      drawn.toFixed(1),
      drawn >= TARGET_FPS,
    );
    const own = 1000 / (own_ms.reduce((sum, ms) => sum + ms, 0) / own_ms.length);
    const slow = `${formatNumber(percentile(own_ms, 99))} ms between two at p99, ${formatNumber(Math.max(...own_ms))} at most`;
    printRow(
      "  the page's own frames meanwhile",
      '',
      `${own.toFixed(1)}; median ${formatNumber(median(own_ms))} ms, ${slow}`,
    );
    printNote(
      "scrolling is the compositor's, which goes on while the page writes; in headless Chromium, which paints by the processor",
    );
    await lab.close();
  } finally {
    await jupyter.stop();
    gpus.end();
  }
}

/**
 * Scrolls the panel down and up with the mouse wheel. Returns how many frames per second the
 * browser's compositor drew, and the times between the page's own frames.
 */
async function scroll(
  lab: OpenLab,
  browser: Browser,
): Promise<{ drawn: number; own_ms: number[] }> {
  const box = await lab.page.locator('#gpumon-panel').boundingBox();
  if (box === null) {
    throw new Error('the panel is not shown');
  }
  await lab.page.evaluate(() => {
    const frames: number[] = [];
    const look = (at_ms: number): void => {
      frames.push(at_ms);
      requestAnimationFrame(look);
    };
    Object.assign(window, { gpumonFrames: frames });
    requestAnimationFrame(look);
  });
  const drawn = await countDrawnFrames(browser, async () => {
    for (const yDistance of [-SCROLL_PX, SCROLL_PX]) {
      await lab.cdp.send('Input.synthesizeScrollGesture', {
        x: box.x + box.width / 2,
        y: box.y + box.height / 2,
        yDistance,
        speed: PX_PER_SECOND,
        gestureSourceType: 'mouse',
      });
    }
  });
  const frames = await lab.page.evaluate(
    () => (window as unknown as { gpumonFrames: number[] }).gpumonFrames,
  );
  return { drawn, own_ms: frames.slice(1).map((at_ms, i) => at_ms - (frames[i] ?? at_ms)) };
}

/**
 * Returns the frames per second that a page's compositor drew during an action, from Chromium's own
 * trace.
 */
async function countDrawnFrames(browser: Browser, during: () => Promise<void>): Promise<number> {
  const cdp = await browser.newBrowserCDPSession();
  const times_us: number[] = [];
  cdp.on('Tracing.dataCollected', ({ value }) => {
    for (const event of value as { name?: string; ts?: number }[]) {
      if (event.name === DRAWN_FRAME && event.ts !== undefined) {
        times_us.push(event.ts);
      }
    }
  });
  await cdp.send('Tracing.start', {
    transferMode: 'ReportEvents',
    traceConfig: { includedCategories: ['cc'] },
  });
  await during();
  const complete = new Promise((resolve) => cdp.once('Tracing.tracingComplete', resolve));
  await cdp.send('Tracing.end');
  await complete;
  await cdp.detach();
  const span_s = (Math.max(...times_us) - Math.min(...times_us)) / 1e6;
  return (times_us.length - 1) / span_s;
}
