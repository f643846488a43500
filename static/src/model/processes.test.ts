import { describe, expect, it } from 'vitest';

import { GIB, gpu, inventory, NOW, process, sample } from '../testing/frames';
import type { GpuSample } from '../wire';
import { gpusOf } from './gpu';
import { memorySegments } from './memory';
import { processRows, SlotKeeper, type ProcessRow } from './processes';

function rowsOf(...gpus: GpuSample[]): ReturnType<typeof processRows> {
  return processRows(gpusOf(inventory(gpus.length), sample(NOW, gpus)), new SlotKeeper());
}

function readable(rows: ReturnType<typeof processRows>): ProcessRow[] {
  return rows.filter((row) => row.kind === 'process');
}

describe('the list', () => {
  it('goes GPU by GPU, the largest holder first, the unknown last', () => {
    const small = process(1, { memory_bytes: GIB });
    const unknown = process(2, { memory_bytes: { absent: 'unknown' } });
    const large = process(3);
    const rows = readable(rowsOf(gpu(0, { processes: [small, unknown, large] }), gpu(1, { processes: [small] })));
    expect(rows.map((row) => [row.gpu, row.process.pid])).toEqual([
      [0, 3],
      [0, 1],
      [0, 2],
      [1, 1],
    ]);
  });

  it('says why processes cannot be told', () => {
    const rows = rowsOf(gpu(0, { processes: { absent: 'no_permission' } }));
    expect(rows).toMatchObject([{ kind: 'unreadable', gpu: 0 }]);
  });

  it('has a process that holds two MIG instances twice', () => {
    const part = (gpu_instance: number) => process(7, { mig: { gpu_instance, compute_instance: 0 } });
    const keys = readable(rowsOf(gpu(0, { processes: [part(1), part(2)] }))).map(({ key }) => key);
    expect(new Set(keys).size).toBe(2);
  });

  it('tells apart a PID that is used again', () => {
    const first = readable(rowsOf(gpu(0, { processes: [process(7, { started_ms: 1 })] })));
    const second = readable(rowsOf(gpu(0, { processes: [process(7, { started_ms: 2 })] })));
    expect(first[0]?.key).not.toBe(second[0]?.key);
  });
});

describe('colours', () => {
  it('stay with their process when others come and go', () => {
    const keeper = new SlotKeeper();
    expect(keeper.assign(0, [process(1), process(2), process(3)])).toEqual([0, 1, 2]);
    expect(keeper.assign(0, [process(3), process(4)])).toEqual([2, 0]);
    expect(keeper.assign(1, [process(9)])).toEqual([0]);
    expect(keeper.assign(0, [process(3), process(4)])).toEqual([2, 0]);
  });
});

describe('the memory bar', () => {
  it('shows what no process accounts for, and what the driver keeps', () => {
    const now = gpu(0, { processes: [process(1)] });
    const segments = memorySegments(now.memory, readable(rowsOf(now)));
    expect(segments.map(({ paint, bytes }) => [paint, bytes / GIB])).toEqual([
      [0, 61],
      ['other', 17],
      ['reserved', 1],
    ]);
  });

  it('never passes what is in use, however the readings disagree', () => {
    const now = gpu(0, { processes: [process(1), process(2)] });
    const segments = memorySegments(now.memory, readable(rowsOf(now)));
    expect(segments.map(({ bytes }) => bytes / GIB)).toEqual([61, 17, 1]);
  });

  it('is empty where the memory cannot be read', () => {
    const memory = { ...gpu(0).memory, used_bytes: { absent: 'no_permission' } as const };
    expect(memorySegments(memory, [])).toEqual([]);
  });
});
