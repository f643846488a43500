/**
 * The cost of gpumon to a browser and to Jupyter, compared with NVDashboard. The GPUs are those of
 * the fake NVML library, whose calls take as long as on an H200.
 *
 * npm run bench --workspace tests/browser [-- -t NAME]
 *
 * `GPUMON_BENCH_SECONDS` is the duration of continuous measurements. The load on a driver can only
 * be measured with a real GPU, and visible smoothness only with a real screen.
 */

import { afterAll, beforeAll, describe, it } from 'vitest';

import { launchBrowser } from '../../browser/src/browser';
import { Gpus } from './gpus';
import { startGpumon, startPeer } from './lab';
import type { Bench } from './measure/bench';
import { measureDownloads } from './measure/bytes';
import { measureEightGpus } from './measure/eight-gpus';
import { measureFleet } from './measure/fleet';
import { measureFirstNumbers } from './measure/first-numbers';
import { measureJupyterStatus } from './measure/jupyter-status';
import { measureManyGpus } from './measure/many-gpus';
import { measurePixelAge } from './measure/pixel';
import { measureTasks } from './measure/tasks';
import { measureViews } from './measure/views';
import { missedTargets } from './rows';

const MEASUREMENTS = {
  bytes: measureDownloads,
  jupyterStatus: measureJupyterStatus,
  eightGpus: measureEightGpus,
  pixel: measurePixelAge,
  views: measureViews,
  firstNumbers: measureFirstNumbers,
  manyGpus: measureManyGpus,
  fleet: measureFleet,
  tasks: measureTasks,
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
    // The first request starts gpumon, which then records history for the measurements.
    await fetch(bench.gpumon.pageUrl('gpumon/healthz'));
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
