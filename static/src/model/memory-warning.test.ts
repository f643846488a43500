import { beforeEach, describe, expect, it } from 'vitest';

import {
  GIB,
  gpu,
  hello,
  inventory,
  NOW,
  process,
  sample,
  makeUnifiedGpu,
} from '../testing/frames';
import type { Condition, Process } from '../wire';
import { MemoryWarnings, type MemoryWarning } from './memory-warning';
import { Store } from './store';

const NEARLY_FULL: Condition = {
  condition: 'memory_nearly_full',
  since_ms: NOW,
  severity: 'warning',
  text: 'Memory nearly full: 1.00 GiB of 140 GiB free. The next allocation may fail.',
  free_bytes: GIB,
  total_bytes: 140 * GIB,
};

/** Returns the condition that this kernel's notebook fills the memory within half a minute. */
function filling(kernel_id: string, gib_per_s: number): Condition {
  const growth = { pid: kernel_id.charCodeAt(0), bytes_per_second: gib_per_s * GIB };
  return {
    condition: 'memory_filling',
    since_ms: NOW,
    severity: 'critical',
    text: 'Memory full soon.',
    left_ms: 29_000,
    bytes_per_second: gib_per_s * GIB,
    growing: [growth],
  };
}

function notebook(kernel_id: string, memorySize: number): Process {
  const owner = {
    parents: [],
    notebook: { kernel_id, kernel_pid: 10, path: `old/${kernel_id}.ipynb` },
  };
  return process(kernel_id.charCodeAt(0), { owner, memory_bytes: memorySize * GIB });
}

const OTHER = process(5, { memory_bytes: 4.8 * GIB, name: 'vllm', user: 'bob' });
const pathOf = (kernelId: string): string | null =>
  kernelId === 'foreign' ? null : `${kernelId}.ipynb`;

describe('memory warning', () => {
  let store: Store;
  let warnings: MemoryWarnings;
  let told: MemoryWarning[];
  let second = 0;
  /** Applies a sample with one GPU. */
  const show = (processes: Process[], ...conditions: Condition[]): void => {
    second += 1;
    store.apply({
      type: 'sample',
      ...sample(NOW + second * 1000, [gpu(0, { processes, conditions })]),
    });
    told = warnings.update(store, pathOf);
  };
  const text = (): string | undefined => told[0]?.text.replaceAll('\u00a0', ' ');

  beforeEach(() => {
    store = new Store(() => NOW);
    store.apply(hello({ inventory: inventory(1), sample: null }));
    warnings = new MemoryWarnings();
  });

  it('warning names holders and the notebook', () => {
    show([notebook('train', 70), notebook('eval', 20), OTHER]);
    expect(told).toEqual([]);
    show([notebook('train', 70), notebook('eval', 20), OTHER], filling('train', 1.5));
    expect(text()).toBe(
      'GPU 0: Memory full in about 30 s: train.ipynb grows 1.50 GiB/s\n' +
        'Held by train.ipynb 70.0 GiB, eval.ipynb 20.0 GiB, vllm (bob) 4.80 GiB',
    );
    expect(told).toMatchObject([{ gpu: 0, urgent: true, kernelId: 'train' }]);
  });

  it('warning of unified memory names the system', () => {
    const now = makeUnifiedGpu(0, 80, {
      processes: [notebook('train', 80)],
      conditions: [filling('train', 1.5)],
    });
    store.apply({ type: 'sample', ...sample(NOW, [now]) });
    told = warnings.update(store, pathOf);
    expect(text()).toMatch(/\nHeld by train\.ipynb 80\.0 GiB, rest of the system 20\.0 GiB$/);
  });

  it('warning offers largest own notebook, if any', () => {
    show(
      [notebook('foreign', 70), notebook('eval', 5), notebook('train', 20)],
      filling('foreign', 1),
    );
    expect(told[0]?.kernelId).toBe('train');
    expect(text()).toContain('foreign.ipynb (ana) grows 1.00 GiB/s');
    show([notebook('foreign', 70)], filling('foreign', 1));
    expect(told).toEqual([]);
  });

  it('unknown values are omitted', () => {
    const silent: Process = { ...OTHER, memory_bytes: { absent: 'unknown' } };
    show([notebook('train', 90), silent], filling('train', 1));
    expect(text()?.split('\n')[1]).toBe('Held by train.ipynb 90.0 GiB');
  });

  it('long names fit', () => {
    const long = 'a-very-long-name-of-a-notebook-in-a-deep-folder';
    show(
      [notebook(long, 80), notebook(`b${long}`, 20), notebook(`c${long}`, 5), OTHER],
      filling(long, 2),
    );
    expect(text()?.length).toBeLessThanOrEqual(140);
    expect(text()).toContain('a-very-…eep-folder.ipynb grows 2.00 GiB/s');
  });

  it('warning lasts until memory is no longer full', () => {
    show([notebook('train', 138)], NEARLY_FULL);
    expect(told).toEqual([]);
    show([notebook('train', 130)], filling('train', 1));
    expect(told).toHaveLength(1);
    show([notebook('train', 138)], NEARLY_FULL);
    expect(text()).toBe(`GPU 0: ${NEARLY_FULL.text}\nHeld by train.ipynb 138 GiB`);
    show([notebook('train', 20)]);
    expect(told).toEqual([]);
  });
});
