/** What measurements are given. */

import type { Browser } from 'playwright-core';

import type { JupyterServer } from '../../../browser/src/jupyter';

export interface Bench {
  browser: Browser;
  /** Eight GPUs, with gpumon, and with the peer. */
  gpumon: JupyterServer;
  peer: JupyterServer;
  /** How long to look at what goes on all the time. */
  seconds: number;
}
