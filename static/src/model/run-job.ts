/** The jobs that the server can run, and the devices for them. */

import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { Benchmark } from './benchmarks';
import type { GpuState } from './gpu';

export interface RunTarget {
  /** The unique identifier of the target. */
  key: string;
  name: string;
  where: { backend: 'cuda'; device: string } | { backend: 'cpu' };
}

/** The time for which the out-of-memory demo holds the memory, in seconds. */
const HOLD_S = 10;
export const BURN_S = 60;

/**
 * Returns the devices that can run jobs. GPUs are identified by UUID, because CUDA may number them
 * in another order than the driver.
 */
export function listTargets(gpus: readonly GpuState[]): RunTarget[] {
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

/** Returns the job in the server's format, or `null` for a kind that only a newer page knows. */
export function createJob({ kind, ids }: Benchmark, { where }: RunTarget): object | null {
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
