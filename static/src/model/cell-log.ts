/** The executions of notebooks' cells that took something of the GPUs, for charts and tables. */

import { plainText } from '../lib/text';
import type { CellCost } from './cell-cost';

export interface CellExecution {
  /** Tells an execution from others. */
  key: string;
  kernelId: string;
  /** The notebook's file name. */
  notebook: string;
  /** As the notebook counts them; `null` where the kernel does not. */
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
  private readonly all = new Map<string, CellExecution>();

  /** Takes in an execution, or what has become of it. */
  put(execution: CellExecution): void {
    this.all.set(execution.key, execution);
    for (const key of this.all.keys()) {
      if (this.all.size <= KEPT) {
        break;
      }
      this.all.delete(key);
    }
  }

  /** The oldest first. */
  get executions(): readonly CellExecution[] {
    return [...this.all.values()];
  }
}

/** What an execution is called: `[3] model.fit(data)`, the first line of its code that says something. */
export function executionName({ count, code }: CellExecution): string {
  const lines = code.split('\n').map((line) => line.trim());
  const telling = lines.find((line) => line !== '' && !line.startsWith('#')) ?? lines[0] ?? '';
  return plainText(`${executionLabel(count)} ${telling}`.trim(), LONGEST_NAME);
}

/** `[3]`; `[ ]` where the kernel does not count. */
export function executionLabel(count: number | null): string {
  return `[${count === null ? ' ' : String(count)}]`;
}

/** The executions on these GPUs, the most expensive first. */
export function byCost(
  executions: readonly CellExecution[],
  order: CellOrder,
  gpus: ReadonlySet<number>,
): CellExecution[] {
  const worth = ({ cost }: CellExecution): number =>
    ({ elapsed: cost.ended_ms - cost.started_ms, gpu: cost.gpu_ms, peak: cost.peak_bytes, energy: cost.joules })[
      order
    ] ?? -1;
  return executions
    .filter(({ cost }) => cost.gpus.some((index) => gpus.has(index)))
    .sort((a, b) => worth(b) - worth(a) || b.cost.started_ms - a.cost.started_ms);
}
