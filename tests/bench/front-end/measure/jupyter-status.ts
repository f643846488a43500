/** The latency of Jupyter while all views are open: GET /api/status, 50 times a second. */

import type { JupyterServer } from '../../../browser/src/jupyter';
import { formatNumber, median, percentile, sleep } from '../figures';
import { OpenLab, PEER } from '../lab';
import { printNote, printRow } from '../rows';
import type { Bench } from './bench';

const TARGET = 1.1;
const PAUSE_S = 0.02;
/**
 * The number of rounds. Idle and busy measurements alternate, because the speed of a machine
 * varies.
 */
const ROUNDS = 3;

export async function measureJupyterStatus({
  browser,
  gpumon,
  peer,
  seconds,
}: Bench): Promise<void> {
  const own = await compare(
    gpumon,
    seconds,
    () => OpenLab.open(browser, gpumon, 100),
    async (lab) => {
      await lab.showPanel();
      await lab.showDashboards();
    },
  );
  const other = await compare(
    peer,
    seconds,
    () => OpenLab.open(browser, peer),
    (lab) => lab.showPeerChart(null),
  );
  printRow(
    'GET /api/status with everything open at 10 Hz, p99 against idle',
    `<= ${TARGET} x`,
    own.said,
    own.ratio <= TARGET,
  );
  printRow('  with JupyterLab open, and nothing of gpumon in it', '', own.plain);
  printRow(
    `  the same of ${PEER}`,
    '',
    `${other.said}; ${formatNumber(other.ratio / own.ratio)} times gpumon's`,
  );
  printNote(
    'with the browser on the same machine, whose drawing takes the processors from Jupyter',
  );
}

/**
 * The latency of a server, compared with the latency while it is idle. `ratio` and `said` are about
 * the time when all views are open, and `plain` is about the time when only JupyterLab is open.
 */
interface Compared {
  ratio: number;
  said: string;
  plain: string;
}

async function compare(
  jupyter: JupyterServer,
  seconds: number,
  open: () => Promise<OpenLab>,
  show: (lab: OpenLab) => Promise<unknown>,
): Promise<Compared> {
  const idle: number[] = [];
  const plain: number[] = [];
  const busy: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    idle.push(...(await measureTimes(jupyter, seconds / ROUNDS)));
    const lab = await open();
    plain.push(...(await measureTimes(jupyter, seconds / ROUNDS)));
    await show(lab);
    busy.push(...(await measureTimes(jupyter, seconds / ROUNDS)));
    await lab.close();
    await sleep(1);
  }
  const both = (values: number[]): string =>
    `${formatNumber(percentile(values, 99))} ms (median ${formatNumber(median(values))})`;
  const against = (values: number[]): number => percentile(values, 99) / percentile(idle, 99);
  return {
    ratio: against(busy),
    said: `${formatNumber(against(busy))} x: ${both(busy)}, idle ${both(idle)}`,
    plain: `${formatNumber(against(plain))} x: ${both(plain)}`,
  };
}

/** Measures the time of each answer, in milliseconds. */
async function measureTimes(jupyter: JupyterServer, seconds: number): Promise<number[]> {
  const took: number[] = [];
  const end = performance.now() + seconds * 1000;
  while (performance.now() < end) {
    const begun = performance.now();
    await jupyter.requestApi('GET', 'status');
    took.push(performance.now() - begun);
    await sleep(PAUSE_S);
  }
  return took;
}
