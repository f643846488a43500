/** GPUs of the fake library with the latencies of real ones, used by real processes. */

import { spawn, type ChildProcess } from 'node:child_process';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { FAKE_NVML, newFolder, makeFakeEnvironment } from '../../browser/src/machine';

const H200 = readFileSync(new URL('../h200.toml', import.meta.url), 'utf8');
/**
 * A driver that answers immediately. It reports no PCIe readings, because a real driver takes 20 ms
 * for each of them.
 */
export const FAST_DRIVER = '[returns]\nnvmlDeviceGetMaxPcieLinkGeneration = 3\n';
const PROCESSES_PER_GPU = 2;
/**
 * The time after which power and utilization change direction, in seconds. Without these changes,
 * all samples would have equal values, and charts would show straight lines.
 */
const SWING_PERIOD_S = 10;
const SWING_COUNT = 360;

export class Gpus {
  private readonly sleepers: ChildProcess[];
  private readonly folder = newFolder();

  constructor(
    readonly count: number,
    driver = H200,
  ) {
    this.sleepers = Array.from({ length: count * PROCESSES_PER_GPU }, () =>
      spawn('sleep', ['100000'], { stdio: 'ignore' }),
    );
    const swing = (low: number, high: number): string =>
      JSON.stringify(
        Array.from({ length: SWING_COUNT }, (_, i) => [
          i * SWING_PERIOD_S,
          i % 2 === 0 ? low : high,
        ]),
      );
    const gpus = Array.from(
      { length: count },
      (_, index) =>
        `[[gpu]]\nindex = ${index}\nnvlinks = 18\nutilization_percent = ${swing(5, 95)}\n` +
        `power_watts = ${swing(100, 690)}\nmemory_used = [[0, "20 GiB"], [3600, "120 GiB"]]\n`,
    );
    const processes = this.sleepers.map(
      ({ pid }, at) =>
        `[[process]]\ngpu = ${String(at % count)}\npid = ${pid}\nmemory = "4 GiB"\nsm_percent = 20\n`,
    );
    writeFileSync(this.scenarioPath, [driver, ...gpus, ...processes].join('\n'));
    // The library is copied under its usual file name, because other monitors look for this name.
    copyFileSync(FAKE_NVML, path.join(this.folder, 'libnvidia-ml.so.1'));
  }

  /** Environment variables that make a program read these GPUs. */
  get environment(): Record<string, string> {
    return { ...makeFakeEnvironment(this.scenarioPath), LD_LIBRARY_PATH: this.folder };
  }

  end(): void {
    for (const sleeper of this.sleepers) {
      sleeper.kill();
    }
  }

  private get scenarioPath(): string {
    return path.join(this.folder, 'scenario.toml');
  }
}
