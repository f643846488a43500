/** Two notebooks whose kernels use GPU memory. A script of the fake library defines how much. */

import { writeFileSync } from 'node:fs';
import path from 'node:path';

import type { Browser } from 'playwright-core';
import { onTestFinished } from 'vitest';

import { launchBrowser } from '../src/browser';
import { JupyterServer } from '../src/jupyter';
import { newFolder, makeFakeEnvironment } from '../src/machine';
import { notebookOf } from '../src/notebook-file';

export interface Notebooks {
  browser: Browser;
  jupyter: JupyterServer;
  /**
   * The PID of the kernel of `train.ipynb`. The next field is the PID of the kernel of
   * `eval.ipynb`.
   */
  train: number;
  evaluation: number;
  /** Replaces the fake library's script, which defines the GPUs. */
  script: (toml: string) => void;
}

/**
 * Starts Jupyter with two notebooks until the test ends: `eval.ipynb`, and `train.ipynb` with the
 * cells `code`.
 */
export async function startNotebooks(code: readonly string[]): Promise<Notebooks> {
  const scenario = path.join(newFolder(), 'scenario.toml');
  const browser = await launchBrowser();
  onTestFinished(() => browser.close());
  const jupyter = await JupyterServer.start(makeFakeEnvironment(scenario));
  onTestFinished(() => jupyter.stop());
  jupyter.write('train.ipynb', notebookOf(code));
  jupyter.write('eval.ipynb', notebookOf([]));
  const { pid: train } = await jupyter.startKernel('train.ipynb');
  const { pid: evaluation } = await jupyter.startKernel('eval.ipynb');
  const script = (toml: string): void =>
    writeFileSync(scenario, `start_ms = ${Date.now()}\n${toml}`);
  return { browser, jupyter, train, evaluation, script };
}

/**
 * Returns the lines that add a process to the fake library's script. `memory` is a size, or a list
 * of sizes with their times in seconds.
 */
export function makeProcessScript(
  gpu: number,
  pid: number,
  memory: unknown,
  percent: number,
): string {
  return `[[process]]\ngpu = ${gpu}\npid = ${pid}\nmemory = ${JSON.stringify(memory)}\nsm_percent = ${percent}\n`;
}
