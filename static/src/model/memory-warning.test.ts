import { beforeEach, describe, expect, it } from 'vitest';

import { GIB, gpu, hello, inventory, NOW, process, sample } from '../testing/frames';
import type { Condition, Process } from '../wire';
import { MemoryWarnings, type MemoryWarning } from './memory-warning';
import { valueOf } from './reading';
import { Store } from './store';

const NEARLY_FULL: Condition = {
  condition: 'memory_nearly_full',
  since_ms: NOW,
  severity: 'warning',
  text: 'Of 140 GiB of memory, 1.0 GiB are left: the next allocation may fail.',
  free_bytes: GIB,
  total_bytes: 140 * GIB,
};

function notebook(kernel_id: string, memorySize: number): Process {
  const owner = { parents: [], notebook: { kernel_id, kernel_pid: 10, path: `old/${kernel_id}.ipynb` } };
  return process(kernel_id.charCodeAt(0), { owner, memory_bytes: memorySize * GIB });
}

const OTHER = process(5, { memory_bytes: 4.8 * GIB, name: 'vllm', user: 'bob' });
const nameOf = (kernelId: string): string | null => (kernelId === 'foreign' ? null : `${kernelId}.ipynb`);

describe('a warning about memory', () => {
  let store: Store;
  let warnings: MemoryWarnings;
  let told: MemoryWarning[];
  /** Shows a GPU of 140 GiB, of which the driver keeps 1, once a second. */
  const show = (from_s: number, to_s: number, at: (s: number) => Process[], conditions: Condition[] = []): void => {
    for (let second = from_s; second <= to_s; second += 1) {
      const processes = at(second);
      const used = processes.reduce((sum, one) => sum + (valueOf(one.memory_bytes) ?? 0), 0);
      const memory = { ...gpu(0).memory, used_bytes: used, free_bytes: 139 * GIB - used };
      const now = gpu(0, { processes, memory, conditions });
      store.apply({ type: 'sample', ...sample(NOW + second * 1000, [now]) });
      told = warnings.take(store, nameOf);
    }
  };
  const text = (): string | undefined => told[0]?.text.replaceAll('\u00a0', ' ');

  beforeEach(() => {
    store = new Store(() => NOW);
    store.apply(hello({ inventory: inventory(1), sample: null }));
    warnings = new MemoryWarnings();
  });

  it('names who grows and who holds what, and the notebook that can be acted on', () => {
    show(0, 19, (s) => [notebook('train', 40 + 1.5 * s), notebook('eval', 20), OTHER]);
    expect(told).toEqual([]);
    show(20, 20, (s) => [notebook('train', 40 + 1.5 * s), notebook('eval', 20), OTHER]);
    expect(text()).toBe(
      'GPU 0: memory full in about 30 s: train.ipynb grows 1.50 GiB/s\n' +
        'Held by train.ipynb 70.0 GiB, eval.ipynb 20.0 GiB, vllm (bob) 4.80 GiB',
    );
    expect(told).toMatchObject([{ gpu: 0, urgent: true, kernelId: 'train' }]);
  });

  it('offers the largest notebook where somebody else grows, and none where no notebook of this place holds memory', () => {
    show(0, 30, (s) => [notebook('foreign', 70 + s), notebook('eval', 5), notebook('train', 20)]);
    expect(told[0]?.kernelId).toBe('train');
    expect(text()).toContain('foreign.ipynb (ana) grows 1.00 GiB/s');
    warnings = new MemoryWarnings();
    show(31, 60, (s) => [notebook('foreign', 70 + s)]);
    expect(told).toEqual([]);
  });

  it('waits until it can say who grows, where the growth is older than it', () => {
    show(0, 30, (s) => [notebook('train', 60 + s)]);
    warnings = new MemoryWarnings();
    show(31, 36, (s) => [notebook('train', 60 + s)]);
    expect(told).toEqual([]);
    show(37, 37, (s) => [notebook('train', 60 + s)]);
    expect(text()).toContain('train.ipynb grows 1.00 GiB/s');
  });

  it('leaves out what is not known', () => {
    const silent: Process = { ...OTHER, memory_bytes: { absent: 'unknown' } };
    show(0, 30, (s) => [notebook('train', 60 + s), silent]);
    expect(text()?.split('\n')[1]).toBe('Held by train.ipynb 90.0 GiB');
  });

  it('has room for long names', () => {
    const long = 'a-very-long-name-of-a-notebook-in-a-deep-folder';
    show(0, 30, (s) => [notebook(long, 20 + 2 * s), notebook(`b${long}`, 20), notebook(`c${long}`, 5), OTHER]);
    expect(text()?.length).toBeLessThanOrEqual(140);
    expect(text()).toContain('a-very-long-name-of-a-n… grows 2.00 GiB/s');
  });

  it('goes on while the memory is nearly full, which alone is none', () => {
    show(0, 25, () => [notebook('train', 138)], [NEARLY_FULL]);
    expect(told).toEqual([]);
    show(26, 60, (s) => [notebook('train', 30 + s)]);
    expect(told).toHaveLength(1);
    show(61, 100, () => [notebook('train', 138)], [NEARLY_FULL]);
    expect(text()).toBe(`GPU 0: ${NEARLY_FULL.text}\nHeld by train.ipynb 138 GiB`);
  });

  it('ends when memory is given back, or a while after nothing grows any more', () => {
    show(0, 60, (s) => [notebook('train', 30 + s)]);
    expect(told).toHaveLength(1);
    show(61, 61, () => [notebook('train', 20)]);
    expect(told).toEqual([]);
    show(62, 122, (s) => [notebook('train', s)]);
    expect(told).toHaveLength(1);
    show(123, 130, () => [notebook('train', 122)]);
    expect(told).toHaveLength(1);
    show(131, 145, () => [notebook('train', 122)]);
    expect(told).toEqual([]);
  });
});
