/** Whether Jupyter still answers at once while everything is open: GET /api/status, 50 times a second. */

import type { JupyterServer } from '../../../browser/src/jupyter';
import { digits, median, percentile, sleep } from '../figures';
import { OpenLab, PEER } from '../lab';
import { note, row } from '../rows';
import type { Bench } from './bench';

const TARGET = 1.1;
const PAUSE_S = 0.02;
/** Idle and open in turn, since a machine is not always as fast. */
const ROUNDS = 3;

export async function jupyterStatus({ browser, gpumon, peer, seconds }: Bench): Promise<void> {
  const own = await compare(gpumon, seconds, async () => {
    const lab = await OpenLab.open(browser, gpumon, 100);
    await lab.showPanel();
    await lab.showDashboards();
    return lab;
  });
  const other = await compare(peer, seconds, async () => {
    const lab = await OpenLab.open(browser, peer);
    await lab.showPeer(null);
    return lab;
  });
  row(
    'GET /api/status with everything open at 10 Hz, p99 against idle',
    `<= ${String(TARGET)} x`,
    own.said,
    own.ratio <= TARGET,
  );
  row(`  the same of ${PEER}`, '', `${other.said}; ${digits(other.ratio / own.ratio)} times gpumon's`);
  note('with the browser on the same machine, whose drawing takes the processors from Jupyter');
}

async function compare(
  jupyter: JupyterServer,
  seconds: number,
  open: () => Promise<OpenLab>,
): Promise<{ ratio: number; said: string }> {
  const idle: number[] = [];
  const busy: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    idle.push(...(await times(jupyter, seconds / ROUNDS)));
    const lab = await open();
    busy.push(...(await times(jupyter, seconds / ROUNDS)));
    await lab.close();
    await sleep(1);
  }
  const ratio = percentile(busy, 99) / percentile(idle, 99);
  const both = (values: number[]): string => `${digits(percentile(values, 99))} ms (median ${digits(median(values))})`;
  return { ratio, said: `${digits(ratio)} x: ${both(busy)}, idle ${both(idle)}` };
}

/** How many milliseconds each answer took. */
async function times(jupyter: JupyterServer, seconds: number): Promise<number[]> {
  const took: number[] = [];
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    const begun = performance.now();
    await jupyter.api('GET', 'status');
    took.push(performance.now() - begun);
    await sleep(PAUSE_S);
  }
  return took;
}
