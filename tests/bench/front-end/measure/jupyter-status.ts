/** The latency of Jupyter while all views are open: GET /api/status, 50 times a second. */

import type { JupyterServer } from '../../../browser/src/jupyter';
import { digits, median, percentile, sleep } from '../figures';
import { OpenLab, PEER } from '../lab';
import { note, row } from '../rows';
import type { Bench } from './bench';

const TARGET = 1.1;
const PAUSE_S = 0.02;
/**
 * The number of rounds. Idle and busy measurements alternate, because the speed of a machine
 * varies.
 */
const ROUNDS = 3;

export async function jupyterStatus({ browser, gpumon, peer, seconds }: Bench): Promise<void> {
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
    (lab) => lab.showPeer(null),
  );
  row(
    'GET /api/status with everything open at 10 Hz, p99 against idle',
    `<= ${TARGET} x`,
    own.said,
    own.ratio <= TARGET,
  );
  row('  with JupyterLab open, and nothing of gpumon in it', '', own.plain);
  row(
    `  the same of ${PEER}`,
    '',
    `${other.said}; ${digits(other.ratio / own.ratio)} times gpumon's`,
  );
  note('with the browser on the same machine, whose drawing takes the processors from Jupyter');
}

/**
 * Figures of a server with all views open, and with only JupyterLab open, both relative to an idle
 * server.
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
    idle.push(...(await times(jupyter, seconds / ROUNDS)));
    const lab = await open();
    plain.push(...(await times(jupyter, seconds / ROUNDS)));
    await show(lab);
    busy.push(...(await times(jupyter, seconds / ROUNDS)));
    await lab.close();
    await sleep(1);
  }
  const both = (values: number[]): string =>
    `${digits(percentile(values, 99))} ms (median ${digits(median(values))})`;
  const against = (values: number[]): number => percentile(values, 99) / percentile(idle, 99);
  return {
    ratio: against(busy),
    said: `${digits(against(busy))} x: ${both(busy)}, idle ${both(idle)}`,
    plain: `${digits(against(plain))} x: ${both(plain)}`,
  };
}

/** Measures the time of each answer, in milliseconds. */
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
