/** The servers and options that are passed to measurements. */

import type { Browser } from 'playwright-core';

import type { JupyterServer } from '../../../browser/src/jupyter';

export interface Bench {
  browser: Browser;
  /** The server with gpumon and eight GPUs. `peer` is the server with NVDashboard. */
  gpumon: JupyterServer;
  peer: JupyterServer;
  /** Duration of a continuous measurement, in seconds. */
  seconds: number;
}
