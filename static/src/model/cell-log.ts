/** The runs of notebooks' cells that took something of the GPUs, for charts and tables. */

import { plainText } from '../lib/text';
import type { CellCost } from './cell-cost';

export interface CellRun {
  /** Tells a run from others. */
  key: string;
  kernelId: string;
  /** The notebook's file name. */
  notebook: string;
  /** As the notebook counts its runs; `null` where the kernel has not told. */
  count: number | null;
  code: string;
  running: boolean;
  cost: CellCost;
}

export type CellOrder = 'elapsed' | 'gpu' | 'peak' | 'energy';

/** A notebook worked in all day has hundreds. */
const KEPT = 500;
const LONGEST_NAME = 80;

export class CellLog {
  private readonly all = new Map<string, CellRun>();

  /** Takes in a run, or what has become of it. */
  put(run: CellRun): void {
    this.all.set(run.key, run);
    for (const key of this.all.keys()) {
      if (this.all.size <= KEPT) {
        break;
      }
      this.all.delete(key);
    }
  }

  /** The oldest first. */
  get runs(): readonly CellRun[] {
    return [...this.all.values()];
  }
}

/** What a run is called: `[3] model.fit(data)`, the first line of its code that says something. */
export function runName({ count, code }: CellRun): string {
  const lines = code.split('\n').map((line) => line.trim());
  const telling = lines.find((line) => line !== '' && !line.startsWith('#')) ?? lines[0] ?? '';
  return plainText(`${runLabel(count)} ${telling}`.trim(), LONGEST_NAME);
}

/** `[3]`; `[ ]` where the kernel does not count. */
export function runLabel(count: number | null): string {
  return `[${count === null ? ' ' : String(count)}]`;
}

/** The runs on these GPUs, the most expensive first. */
export function byCost(runs: readonly CellRun[], order: CellOrder, gpus: ReadonlySet<number>): CellRun[] {
  const worth = ({ cost }: CellRun): number =>
    ({ elapsed: cost.ended_ms - cost.started_ms, gpu: cost.gpu_ms, peak: cost.peak_bytes, energy: cost.joules })[
      order
    ] ?? -1;
  return runs
    .filter(({ cost }) => cost.gpus.some((index) => gpus.has(index)))
    .sort((a, b) => worth(b) - worth(a) || b.cost.started_ms - a.cost.started_ms);
}
