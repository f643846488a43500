import { beforeEach, describe, expect, it } from 'vitest';

import {
  GIB,
  makeGpu,
  makeHello,
  makeInventory,
  NOW,
  makeProcess,
  makeSample,
  makeUnifiedGpu,
} from '../testing/frames';
import type { Condition, Process } from '../wire';
import { MemoryWarnings, type MemoryWarning } from './memory-warning';
import { Store } from './store';

const NEARLY_FULL_CONDITION: Condition = {
  condition: 'memory_nearly_full',
  since_ms: NOW,
  severity: 'warning',
  text: 'Memory nearly full: 1.00 GiB of 140 GiB free. The next allocation may fail.',
  free_bytes: GIB,
  total_bytes: 140 * GIB,
};

/**
 * Returns a condition which states that this kernel's notebook will fill the memory within half a
 * minute.
 */
function fillingCondition(kernel_id: string, gib_per_s: number): Condition {
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

function notebookProcess(kernel_id: string, memorySize: number): Process {
  const owner = {
    parents: [],
    notebook: { kernel_id, kernel_pid: 10, path: `old/${kernel_id}.ipynb` },
  };
  return makeProcess(kernel_id.charCodeAt(0), { owner, memory_bytes: memorySize * GIB });
}

const OTHER_PROCESS = makeProcess(5, { memory_bytes: 4.8 * GIB, name: 'vllm', user: 'bob' });
const pathOf = (kernelId: string): string | null =>
  kernelId === 'foreign' ? null : `${kernelId}.ipynb`;

describe('memory warning', () => {
  let store: Store;
  let warnings: MemoryWarnings;
  let shownWarnings: MemoryWarning[];
  let second = 0;
  /** Applies a sample of one GPU with these processes and conditions to the store. */
  const show = (processes: Process[], ...conditions: Condition[]): void => {
    second += 1;
    store.apply({
      type: 'sample',
      ...makeSample(NOW + second * 1000, [makeGpu(0, { processes, conditions })]),
    });
    shownWarnings = warnings.update(store, pathOf);
  };
  const text = (): string | undefined => shownWarnings[0]?.text.replaceAll('\u00a0', ' ');

  beforeEach(() => {
    store = new Store(() => NOW);
    store.apply(makeHello({ inventory: makeInventory(1), sample: null }));
    warnings = new MemoryWarnings();
  });

  it('warning names holders and the notebook', () => {
    show([notebookProcess('train', 70), notebookProcess('eval', 20), OTHER_PROCESS]);
    expect(shownWarnings).toEqual([]);
    show(
      [notebookProcess('train', 70), notebookProcess('eval', 20), OTHER_PROCESS],
      fillingCondition('train', 1.5),
    );
    expect(text()).toBe(
      'GPU 0: Memory full in about 30 s: train.ipynb grows 1.50 GiB/s\n' +
        'Held by train.ipynb 70.0 GiB, eval.ipynb 20.0 GiB, vllm (bob) 4.80 GiB',
    );
    expect(shownWarnings).toMatchObject([{ gpu: 0, urgent: true, kernelId: 'train' }]);
  });

  it('warning of unified memory names the system', () => {
    const now = makeUnifiedGpu(0, 80, {
      processes: [notebookProcess('train', 80)],
      conditions: [fillingCondition('train', 1.5)],
    });
    store.apply({ type: 'sample', ...makeSample(NOW, [now]) });
    shownWarnings = warnings.update(store, pathOf);
    expect(text()).toMatch(/\nHeld by train\.ipynb 80\.0 GiB, rest of the system 20\.0 GiB$/);
  });

  it('warning offers largest notebook of the user', () => {
    show(
      [notebookProcess('foreign', 70), notebookProcess('eval', 5), notebookProcess('train', 20)],
      fillingCondition('foreign', 1),
    );
    expect(shownWarnings[0]?.kernelId).toBe('train');
    expect(text()).toContain('foreign.ipynb (ana) grows 1.00 GiB/s');
    show([notebookProcess('foreign', 70)], fillingCondition('foreign', 1));
    expect(shownWarnings).toEqual([]);
  });

  it('holder with unknown memory is omitted', () => {
    const silent: Process = { ...OTHER_PROCESS, memory_bytes: { absent: 'unknown' } };
    show([notebookProcess('train', 90), silent], fillingCondition('train', 1));
    expect(text()?.split('\n')[1]).toBe('Held by train.ipynb 90.0 GiB');
  });

  it('warning with long names fits into a notification', () => {
    const long = 'a-very-long-name-of-a-notebook-in-a-deep-folder';
    show(
      [
        notebookProcess(long, 80),
        notebookProcess(`b${long}`, 20),
        notebookProcess(`c${long}`, 5),
        OTHER_PROCESS,
      ],
      fillingCondition(long, 2),
    );
    expect(text()?.length).toBeLessThanOrEqual(140);
    expect(text()).toContain('a-very-…eep-folder.ipynb grows 2.00 GiB/s');
  });

  it('warning lasts until memory is no longer full', () => {
    show([notebookProcess('train', 138)], NEARLY_FULL_CONDITION);
    expect(shownWarnings).toEqual([]);
    show([notebookProcess('train', 130)], fillingCondition('train', 1));
    expect(shownWarnings).toHaveLength(1);
    show([notebookProcess('train', 138)], NEARLY_FULL_CONDITION);
    expect(text()).toBe(`GPU 0: ${NEARLY_FULL_CONDITION.text}\nHeld by train.ipynb 138 GiB`);
    show([notebookProcess('train', 20)]);
    expect(shownWarnings).toEqual([]);
  });
});
