/** The cost of a page to the browser, as reported by the DevTools protocol. */

import { mkdirSync, writeFileSync } from 'node:fs';

import type { Browser, CDPSession } from 'playwright-core';

import { sleep } from './figures';
import type { OpenLab } from './lab';
import type { StreamCounts } from './stream-tap';

const PROFILES = new URL('../../../target/bench/', import.meta.url).pathname;

export interface Cost {
  /** Processor time of the page's main thread (`TaskDuration`), in percent of one core. */
  percent: number;
  /**
   * The part of `percent` that is spent in scripts. `layout_percent` is the part that is spent on
   * style and layout.
   */
  script_percent: number;
  layout_percent: number;
  /**
   * Processor time of all the browser's processes, which also paint and composite, in percent of
   * one core.
   */
  browser_percent: number;
  /** Received samples, or messages of the peer, per second. */
  updates: number;
}

/**
 * Measures the cost of an open page. If `GPUMON_BENCH_PROFILE` is set, it also writes a profile.
 */
export async function measureCost(
  lab: OpenLab,
  browser: Browser,
  seconds: number,
  name: string,
): Promise<Cost> {
  const system = await browser.newBrowserCDPSession();
  await lab.cdp.send('Performance.enable', { timeDomain: 'threadTicks' });
  const before = await readMetrics(lab, system);
  await sleep(seconds);
  const after = await readMetrics(lab, system);
  await lab.cdp.send('Performance.disable');
  await system.detach();
  const [was, is] = [new Map(before), new Map(after)];
  const grown = (key: string): number => (is.get(key) ?? 0) - (was.get(key) ?? 0);
  const percent = (key: string): number => (100 * grown(key)) / grown('seconds');
  if (process.env.GPUMON_BENCH_PROFILE !== undefined) {
    await recordProfile(lab.cdp, seconds, name);
  }
  return {
    percent: percent('TaskDuration'),
    script_percent: percent('ScriptDuration'),
    layout_percent: percent('LayoutDuration') + percent('RecalcStyleDuration'),
    browser_percent: percent('browser'),
    updates: grown('samples') / grown('seconds'),
  };
}

async function readMetrics(lab: OpenLab, system: CDPSession): Promise<[string, number][]> {
  const seconds = performance.now() / 1000;
  const { metrics } = await lab.cdp.send('Performance.getMetrics');
  const { processInfo } = await system.send('SystemInfo.getProcessInfo');
  const samples = await lab.page.evaluate(
    () => (window as unknown as { gpumonTap: StreamCounts }).gpumonTap.samples,
  );
  const browser = processInfo.reduce((sum, { cpuTime }) => sum + cpuTime, 0);
  const own: [string, number][] = metrics.map((metric) => [metric.name, metric.value]);
  return [...own, ['seconds', seconds], ['samples', samples], ['browser', browser]];
}

/** Writes a CPU profile, which Chromium's DevTools can open. */
async function recordProfile(cdp: CDPSession, seconds: number, name: string): Promise<void> {
  await cdp.send('Profiler.enable');
  await cdp.send('Profiler.setSamplingInterval', { interval: 200 });
  await cdp.send('Profiler.start');
  await sleep(seconds);
  const { profile: made } = await cdp.send('Profiler.stop');
  await cdp.send('Profiler.disable');
  mkdirSync(PROFILES, { recursive: true });
  writeFileSync(`${PROFILES}${name}.cpuprofile`, JSON.stringify(made));
}
