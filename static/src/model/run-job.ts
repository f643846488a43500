/** What is asked of the server to run something, and where it can run. */

import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { Benchmark } from './benchmarks';
import type { GpuState } from './gpu';

export interface RunTarget {
  /** Tells it from others. */
  key: string;
  name: string;
  where: { backend: 'cuda'; device: string } | { backend: 'cpu' };
}

/** As long as it takes to watch. */
const HOLD_S = 10;
export const BURN_S = 60;

/**
 * Where something can run: CUDA counts GPUs in an order of its own, so they are named by their
 * UUIDs.
 */
export function targetsOf(gpus: readonly GpuState[]): RunTarget[] {
  const targets: RunTarget[] = gpus.flatMap(({ index, name, uuid }) =>
    uuid === null
      ? []
      : [
          {
            key: uuid,
            name: trans.__('GPU %1, %2', index, plainText(name)),
            where: { backend: 'cuda', device: uuid },
          },
        ],
  );
  return [...targets, { key: 'cpu', name: trans.__('CPU'), where: { backend: 'cpu' } }];
}

export function runsOn({ onCpu }: Benchmark, { where }: RunTarget): boolean {
  return onCpu || where.backend === 'cuda';
}

/**
 * The job, as the server takes it; `null` for a kind that only a newer page knows how to ask for.
 */
export function jobOf({ kind, ids }: Benchmark, { where }: RunTarget): object | null {
  switch (kind) {
    case 'bench':
      return { kind, ids, where };
    case 'seeds':
      return { kind, rows: ids, where };
    case 'burn':
      return { kind, where, seconds: BURN_S };
    case 'oom':
      return { kind, scenario: ids[0], where, hold_seconds: HOLD_S };
    case 'selftest':
      return { kind, where };
    default:
      return null;
  }
}
