/**
 * The cost of gpumon to a browser and to Jupyter, compared with NVDashboard, over the fake library
 * with an H200's latencies.
 *
 *     npm run bench --workspace tests/browser [-- -t NAME]
 *
 * `GPUMON_BENCH_SECONDS` is the duration of continuous measurements. The load on a driver can only
 * be measured with a real GPU, and visible smoothness only with a real screen.
 */

import { afterAll, beforeAll, describe, it } from 'vitest';

import { launchBrowser } from '../../browser/src/browser';
import { Gpus } from './gpus';
import { startGpumon, startPeer } from './lab';
import type { Bench } from './measure/bench';
import { bytes } from './measure/bytes';
import { eightGpus } from './measure/eight-gpus';
import { fleet } from './measure/fleet';
import { firstNumbers } from './measure/first-numbers';
import { jupyterStatus } from './measure/jupyter-status';
import { manyGpus } from './measure/many-gpus';
import { pixel } from './measure/pixel';
import { tasks } from './measure/tasks';
import { views } from './measure/views';
import { missedTargets } from './rows';

const MEASUREMENTS = {
  bytes,
  jupyterStatus,
  eightGpus,
  pixel,
  views,
  firstNumbers,
  manyGpus,
  fleet,
  tasks,
};

describe('front end', () => {
  let gpus: Gpus;
  let bench: Bench;

  beforeAll(async () => {
    gpus = new Gpus(8);
    bench = {
      browser: await launchBrowser(),
      gpumon: await startGpumon(gpus),
      peer: await startPeer(gpus),
      seconds: Number(process.env.GPUMON_BENCH_SECONDS ?? 20),
    };
    // The first request starts gpumon, which then keeps a history.
    await fetch(bench.gpumon.page('gpumon/healthz'));
  });
  afterAll(async () => {
    await bench.browser.close();
    await bench.gpumon.stop();
    await bench.peer.stop();
    gpus.end();
    const missed = missedTargets();
    if (missed.length > 0) {
      console.error(`${missed.length} over their target`);
      process.exitCode = 1;
    }
  });

  for (const [name, measure] of Object.entries(MEASUREMENTS)) {
    it(name, () => measure(bench));
  }
});
