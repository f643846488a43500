import { describe, expect, it } from 'vitest';

import { GIB, makeGpu, makeInventory, NOW, makeProcess, makeSample } from '../testing/frames';
import type { Condition, GpuSample } from '../wire';
import { gpusOf } from './gpu';
import { memorySegments } from './memory';
import { ColorSlots } from './color-slots';
import { valueOf } from './reading';
import { holderRows, type HolderRow } from './holders';

function rowsOf(...gpus: GpuSample[]): ReturnType<typeof holderRows> {
  return holderRows(gpusOf(makeInventory(gpus.length), makeSample(NOW, gpus)), new ColorSlots());
}

function selectHolders(rows: ReturnType<typeof holderRows>): HolderRow[] {
  return rows.filter((row) => row.kind === 'holder');
}

describe('process list', () => {
  it('list is grouped by GPU, largest holder first', () => {
    const small = makeProcess(1, { memory_bytes: GIB });
    const unknown = makeProcess(2, { memory_bytes: { absent: 'unknown' } });
    const large = makeProcess(3);
    const rows = selectHolders(
      rowsOf(
        makeGpu(0, { processes: [small, unknown, large] }),
        makeGpu(1, { processes: [small] }),
      ),
    );
    expect(rows.map((row) => [row.gpu, row.processes[0].pid])).toEqual([
      [0, 3],
      [0, 1],
      [0, 2],
      [1, 1],
    ]);
  });

  it('unreadable processes have a reason', () => {
    const rows = rowsOf(makeGpu(0, { processes: { absent: 'no_permission' } }));
    expect(rows).toMatchObject([{ kind: 'unreadable', gpu: 0 }]);
  });

  it('omitted processes are counted', () => {
    const rows = rowsOf(
      makeGpu(0, { processes: [makeProcess(1)], processes_omitted: 12 }),
      makeGpu(1, { processes: [] }),
    );
    expect(rows).toMatchObject([{ kind: 'holder' }, { kind: 'omitted', gpu: 0, count: 12 }]);
  });

  it('invisible processes are reported', () => {
    const rows = rowsOf(
      makeGpu(0, { processes: [], unlisted_memory_bytes: 7 }),
      makeGpu(1, { processes: [] }),
    );
    expect(rows).toMatchObject([{ kind: 'unlisted', gpu: 0, bytes: 7 }]);
  });

  it('allocation without process shows its owner', () => {
    const slurm = { by: 'slurm', job_id: '88123', user: 'ana' } as const;
    const pod = {
      by: 'kubernetes',
      namespace: 'research',
      pod: 'train-0',
      container: 'trainer',
    } as const;
    const rows = rowsOf(
      makeGpu(0, { processes: [makeProcess(1)], allocated_to: [slurm] }),
      makeGpu(1, { processes: [], allocated_to: [slurm, pod, { ...pod, container: 'loader' }] }),
      makeGpu(2, { processes: { absent: 'no_permission' }, allocated_to: [slurm] }),
    );
    expect(rows).toMatchObject([
      { kind: 'holder', gpu: 0 },
      { kind: 'allocated', gpu: 1, to: 'slurm 88123 (ana), pod research/train-0' },
      { kind: 'unreadable', gpu: 2 },
    ]);
  });

  it('process on two MIG instances has two rows', () => {
    const part = (gpu_instance: number) =>
      makeProcess(7, { mig: { gpu_instance, compute_instance: 0 } });
    const keys = selectHolders(rowsOf(makeGpu(0, { processes: [part(1), part(2)] }))).map(
      ({ key }) => key,
    );
    expect(new Set(keys).size).toBe(2);
  });

  it('process with reused PID is a different holder', () => {
    const first = selectHolders(
      rowsOf(makeGpu(0, { processes: [makeProcess(7, { started_ms: 1 })] })),
    );
    const second = selectHolders(
      rowsOf(makeGpu(0, { processes: [makeProcess(7, { started_ms: 2 })] })),
    );
    expect(first[0]?.key).not.toBe(second[0]?.key);
  });
});

describe('notebook row', () => {
  const notebook = {
    kernel_id: 'k1',
    kernel_name: 'python3',
    path: 'work/train.ipynb',
    kernel_pid: 10,
  };
  const owner = { parents: [], notebook };
  const idle = (pids: number[]): Condition => ({
    condition: 'held_idle',
    since_ms: NOW,
    severity: 'warning',
    text: 'Memory is held and nothing runs.',
    bytes: GIB,
    idle_ms: 60_000,
    pids,
  });

  it('child processes of kernel count as notebook', () => {
    const worker = makeProcess(11, {
      owner,
      memory_bytes: 9 * GIB,
      sm_percent: 40,
      name: 'worker',
    });
    const kernel = makeProcess(10, { owner, memory_bytes: 2 * GIB, sm_percent: 5 });
    const rows = selectHolders(
      rowsOf(
        makeGpu(0, { processes: [makeProcess(3), worker, kernel] }),
        makeGpu(1, { processes: [worker] }),
      ),
    );
    expect(
      rows.map((row) => [row.gpu, row.name, row.processes.map(({ pid }) => pid), row.memory_bytes]),
    ).toEqual([
      [0, 'python3', [3], 61 * GIB],
      [0, 'train.ipynb', [10, 11], 11 * GIB],
      [1, 'train.ipynb', [11], 9 * GIB],
    ]);
    expect(rows[1]?.sm_percent).toBe(45);
    expect(rows[1]?.slot).toBe(rows[2]?.slot);
    expect(rows.map((row) => valueOf(row.host_memory_bytes))).toEqual([3 * GIB, 6 * GIB, 3 * GIB]);
  });

  it('host memory counts once for MIG instances', () => {
    const part = (gpu_instance: number) =>
      makeProcess(10, { owner, mig: { gpu_instance, compute_instance: 0 } });
    const [row] = selectHolders(rowsOf(makeGpu(0, { processes: [part(1), part(2)] })));
    expect([row?.memory_bytes, valueOf(row?.host_memory_bytes)]).toEqual([122 * GIB, 3 * GIB]);
  });

  it('available values of notebook processes are summed', () => {
    const kernel = makeProcess(10, { owner, sm_percent: { value: 5, at_ms: NOW - 2000 } });
    const hidden = makeProcess(11, {
      owner,
      memory_bytes: { absent: 'unknown' },
      sm_percent: { value: 6, at_ms: NOW - 3000 },
    });
    const [row] = selectHolders(rowsOf(makeGpu(0, { processes: [kernel, hidden] })));
    expect(row?.memory_bytes).toBe(61 * GIB);
    expect(row?.sm_percent).toEqual({ value: 11, at_ms: NOW - 3000 });
  });

  it('notebook is idle if all processes are', () => {
    const processes = [makeProcess(10, { owner }), makeProcess(11, { owner })];
    const idleOf = (pids: number[]) =>
      selectHolders(rowsOf(makeGpu(0, { processes, conditions: [idle(pids)] })))[0]?.idle_ms;
    expect(idleOf([10, 11])).toBe(60_000);
    expect(idleOf([10])).toBeNull();
  });
});

describe('memory bar', () => {
  it('unattributed memory is shown', () => {
    const now = makeGpu(0, { processes: [makeProcess(1)] });
    const segments = memorySegments(now, selectHolders(rowsOf(now)));
    expect(segments.map(({ paint, bytes }) => [paint, bytes / GIB])).toEqual([
      [expect.any(Number), 61],
      ['other', 17],
    ]);
  });

  it('process memory shown never exceeds memory in use', () => {
    const now = makeGpu(0, { processes: [makeProcess(1), makeProcess(2)] });
    const segments = memorySegments(now, selectHolders(rowsOf(now)));
    expect(segments.map(({ bytes }) => bytes / GIB)).toEqual([61, 17]);
  });

  it('unreadable memory has an empty bar', () => {
    const memory = { ...makeGpu(0).memory, used_bytes: { absent: 'no_permission' } as const };
    expect(memorySegments(makeGpu(0, { memory }), [])).toEqual([]);
  });
});
