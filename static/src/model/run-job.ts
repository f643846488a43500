/** What is asked of the server to run something, and where it can run. */

import { plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { CatalogueEntry } from '../wire';
import type { GpuState } from './gpu';

export interface RunTarget {
  /** Tells it from others. */
  key: string;
  name: string;
  /** The GPU whose readings tell what happens; `null` for the CPU. */
  gpu: number | null;
  where: { backend: 'cuda'; device: string } | { backend: 'cpu' };
}

/** As long as it takes to watch. */
const HOLD_S = 10;
const BURN_S = 60;

/** Where this can run: CUDA counts GPUs in an order of its own, so they are named by their UUIDs. */
export function targetsOf(entry: CatalogueEntry, gpus: readonly GpuState[]): RunTarget[] {
  const targets: RunTarget[] = gpus.flatMap(({ index, name, uuid }) =>
    uuid === null
      ? []
      : [
          {
            key: uuid,
            name: trans.__('GPU %1, %2', index, plainText(name)),
            gpu: index,
            where: { backend: 'cuda', device: uuid },
          },
        ],
  );
  const cpu: RunTarget = { key: 'cpu', name: trans.__('CPU'), gpu: null, where: { backend: 'cpu' } };
  return entry.on_cpu ? [...targets, cpu] : targets;
}

/** The job, as the server takes it; `null` for a kind that only a newer page knows how to ask for. */
export function jobOf({ kind, id }: CatalogueEntry, { where }: RunTarget): object | null {
  switch (kind) {
    case 'bench':
      return { kind, ids: [id], where };
    case 'seeds':
      return { kind, rows: [id], where };
    case 'burn':
      return { kind, where, seconds: BURN_S };
    case 'oom':
      return { kind, scenario: id, where, hold_seconds: HOLD_S };
    case 'selftest':
      return { kind, where };
    default:
      return null;
  }
}
