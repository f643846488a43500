import { describe, expect, it } from 'vitest';

import { GIB, makeGpu, makeInventory, NOW, makeProcess, makeSample } from '../testing/frames';
import type { Process } from '../wire';
import type { Level } from './describe';
import { gpusOf } from './gpu';
import {
  filterGpus,
  removeWordsExceptLevels,
  hasLevelWord,
  gpuFilterSuggestions,
  toggleLevelWord,
} from './gpu-list';
import { ColorSlots } from './color-slots';
import { holderRows } from './holders';

const kernel = (pid: number, kernel_id: string, path: string, user: string): Process =>
  makeProcess(pid, {
    user,
    name: 'python3',
    owner: { parents: [], notebook: { kernel_id, path, kernel_pid: pid } },
  });
const now = makeSample(NOW, [
  makeGpu(0, { processes: [kernel(10, 'k1', 'work/train.ipynb', 'ana')] }),
  makeGpu(1, {
    processes: [
      makeProcess(3, { user: 'bob', name: 'vllm', command: 'vllm serve', memory_bytes: 5 * GIB }),
    ],
  }),
  makeGpu(2, {
    processes: [makeProcess(12, { user: 'ana', name: 'sweep.py', command: 'python sweep.py' })],
  }),
  makeGpu(3),
]);
const gpus = gpusOf(makeInventory(4), now);
const rows = holderRows(gpus, new ColorSlots(), (id) => (id === 'k1' ? 'b/a.ipynb' : null));
const facts = {
  isBusy: ({ index }: { index: number }) => index < 2,
  levelOf: ({ index }: { index: number }): Level => (index === 1 ? 'critical' : 'warning'),
};
/** The rows of the same holders on a Jupyter server to which none of the kernels belong. */
const elsewhere = holderRows(gpus, new ColorSlots());
const found = (typed: string): [gpus: number[], rows: string[]] => {
  const chosen = filterGpus(typed, gpus, rows, facts);
  return [
    chosen.gpus.map(({ index }) => index),
    chosen.rows.map((row) => (row.kind === 'holder' ? row.name : row.kind)),
  ];
};

describe('GPU filter', () => {
  it.each([
    ['', [0, 1, 2, 3], ['a.ipynb', 'vllm', 'sweep.py']],
    ['busy', [0, 1], ['a.ipynb', 'vllm']],
    ['IDLE', [2, 3], ['sweep.py']],
    ['bob', [1], ['vllm']],
    ['work/train', [0], ['a.ipynb']],
    ['b/a', [0], ['a.ipynb']],
    ['a.ipynb', [0], ['a.ipynb']],
    ['12', [2], ['sweep.py']],
    ['h200', [0, 1, 2, 3], ['a.ipynb', 'vllm', 'sweep.py']],
    ['ana, idle', [2], ['sweep.py']],
    ['critical', [1], ['vllm']],
    ['ana warning', [0, 2], ['a.ipynb', 'sweep.py']],
    ['nobody', [], []],
  ])('filter "%s" selects GPUs and holders', (typed, indices, names) => {
    expect(found(typed)).toEqual([indices, names]);
  });

  it('lost GPU is not idle', () => {
    const lost = gpusOf(
      makeInventory(1),
      makeSample(NOW, [makeGpu(2, { health: { state: 'lost', since_ms: NOW } })]),
    );
    expect(filterGpus('idle', lost, [], facts).gpus).toEqual([]);
  });

  it('alert level word is toggled in the filter', () => {
    const typed = toggleLevelWord('ana', 'critical');
    expect([typed, hasLevelWord(typed, 'critical'), removeWordsExceptLevels(typed)]).toEqual([
      'ana critical',
      true,
      'critical',
    ]);
    expect(toggleLevelWord(typed, 'critical')).toBe('ana');
    expect(hasLevelWord('ana', 'critical')).toBe(false);
  });

  it('number in filter matches whole index or PID', () => {
    expect(found('3')).toEqual([[1, 3], ['vllm']]);
    expect(found('1')).toEqual([[1], ['vllm']]);
  });

  it('filter "mine" matches notebooks and processes of user', () => {
    expect(found('mine')).toEqual([
      [0, 2],
      ['a.ipynb', 'sweep.py'],
    ]);
    expect(filterGpus('mine', gpus, elsewhere, facts).gpus).toEqual([]);
  });

  it('suggestions contain existing names', () => {
    expect(gpuFilterSuggestions(rows)).toEqual([
      'mine',
      'busy',
      'idle',
      'critical',
      'warning',
      'ana',
      'bob',
      'a.ipynb',
      'vllm',
      'sweep.py',
    ]);
    expect(gpuFilterSuggestions(elsewhere)[0]).toBe('busy');
  });
});
