import { describe, expect, it } from 'vitest';

import { GIB, gpu, inventory, NOW, process, sample } from '../testing/frames';
import type { Process } from '../wire';
import type { Level } from './describe';
import { gpusOf } from './gpu';
import { filtered, levelWords, selectsLevel, suggestions, withLevelToggled } from './gpu-filter';
import { ColorSlots } from './color-slots';
import { holderRows } from './holders';

const kernel = (pid: number, kernel_id: string, path: string, user: string): Process =>
  process(pid, {
    user,
    name: 'python3',
    owner: { parents: [], notebook: { kernel_id, path, kernel_pid: pid } },
  });
const now = sample(NOW, [
  gpu(0, { processes: [kernel(10, 'k1', 'work/train.ipynb', 'ana')] }),
  gpu(1, {
    processes: [
      process(3, { user: 'bob', name: 'vllm', command: 'vllm serve', memory_bytes: 5 * GIB }),
    ],
  }),
  gpu(2, {
    processes: [process(12, { user: 'ana', name: 'sweep.py', command: 'python sweep.py' })],
  }),
  gpu(3),
]);
const gpus = gpusOf(inventory(4), now);
const rows = holderRows(gpus, new ColorSlots(), (id) => (id === 'k1' ? 'b/a.ipynb' : null));
const facts = {
  isBusy: ({ index }: { index: number }) => index < 2,
  levelOf: ({ index }: { index: number }): Level => (index === 1 ? 'critical' : 'warning'),
};
/** The same rows without a kernel of this Jupyter server. */
const elsewhere = holderRows(gpus, new ColorSlots());
const found = (typed: string): [gpus: number[], rows: string[]] => {
  const chosen = filtered(typed, gpus, rows, facts);
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
      inventory(1),
      sample(NOW, [gpu(2, { health: { state: 'lost', since_ms: NOW } })]),
    );
    expect(filtered('idle', lost, [], facts).gpus).toEqual([]);
  });

  it('word of a level is toggled', () => {
    const typed = withLevelToggled('ana', 'critical');
    expect([typed, selectsLevel(typed, 'critical'), levelWords(typed)]).toEqual([
      'ana critical',
      true,
      'critical',
    ]);
    expect(withLevelToggled(typed, 'critical')).toBe('ana');
    expect(selectsLevel('ana', 'critical')).toBe(false);
  });

  it('number matches whole index or PID', () => {
    expect(found('3')).toEqual([[1, 3], ['vllm']]);
    expect(found('1')).toEqual([[1], ['vllm']]);
  });

  it('word mine matches own notebooks and processes', () => {
    expect(found('mine')).toEqual([
      [0, 2],
      ['a.ipynb', 'sweep.py'],
    ]);
    expect(filtered('mine', gpus, elsewhere, facts).gpus).toEqual([]);
  });

  it('suggestions contain existing names', () => {
    expect(suggestions(rows)).toEqual([
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
    expect(suggestions(elsewhere)[0]).toBe('busy');
  });
});
