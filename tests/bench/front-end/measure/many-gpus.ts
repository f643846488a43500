/** Sixty-four GPUs at one sample a second: the main thread, and whether the panel still scrolls smoothly. */

import { digits, median, percentile } from '../figures';
import { Gpus } from '../gpus';
import { OpenLab, startGpumon } from '../lab';
import { costOf } from '../main-thread';
import { note, row } from '../rows';
import type { Bench } from './bench';
import { said } from './eight-gpus';

const GPUS = 64;
const TARGET_PERCENT = 5;
/** A screen of 60 Hz, less what a clock's steps make of it. */
const TARGET_FPS = 59;
const SCROLL_PX = 3000;
const PX_PER_SECOND = 1000;

export async function manyGpus({ browser, seconds }: Bench): Promise<void> {
  const gpus = new Gpus(GPUS);
  const jupyter = await startGpumon(gpus);
  try {
    const lab = await OpenLab.open(browser, jupyter);
    await lab.showPanel();
    const cost = await costOf(lab, browser, seconds, 'sixty-four-gpus');
    const name = `browser main thread, ${String(GPUS)} GPUs at 1 Hz`;
    row(name, `<= ${String(TARGET_PERCENT)} % of a core`, said(cost), cost.percent <= TARGET_PERCENT);
    const frames = await scroll(lab);
    const fps = 1000 / (frames.reduce((sum, ms) => sum + ms, 0) / frames.length);
    const slow = `${digits(percentile(frames, 99))} ms between two at p99, ${digits(Math.max(...frames))} at most`;
    row(
      '  frames a second while the panel is scrolled',
      '60',
      `${fps.toFixed(1)}; median ${digits(median(frames))} ms, ${slow}`,
      fps >= TARGET_FPS,
    );
    note('between calls of requestAnimationFrame, in headless Chromium, which paints by the processor');
    await lab.close();
  } finally {
    await jupyter.stop();
    gpus.end();
  }
}

/** Scrolls the panel down and up again by the wheel, and gives the times between frames. */
async function scroll(lab: OpenLab): Promise<number[]> {
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
  for (const yDistance of [-SCROLL_PX, SCROLL_PX]) {
    await lab.cdp.send('Input.synthesizeScrollGesture', {
      x: box.x + box.width / 2,
      y: box.y + box.height / 2,
      yDistance,
      speed: PX_PER_SECOND,
      gestureSourceType: 'mouse',
    });
  }
  const frames = await lab.page.evaluate(() => (window as unknown as { gpumonFrames: number[] }).gpumonFrames);
  return frames.slice(1).map((at_ms, i) => at_ms - (frames[i] ?? at_ms));
}
