import { beforeEach, describe, expect, it } from 'vitest';

import { GIB, gpu, inventory, NOW, process, sample } from '../testing/frames';
import type { Process } from '../wire';
import { gpusOf } from './gpu';
import { Growth } from './growth';
import { holderRows, SlotKeeper, type HolderRow } from './holders';

function rowsOf(processes: Process[]): HolderRow[] {
  const gpus = gpusOf(inventory(1), sample(NOW, [gpu(0, { processes })]));
  return holderRows(gpus, new SlotKeeper()).filter((row) => row.kind === 'holder');
}

function holder(pid: number, memorySize: number): Process {
  return process(pid, { memory_bytes: memorySize * GIB });
}

describe('growth', () => {
  let growth: Growth;
  let rows: HolderRow[];
  /** Shows who holds what, once a second. */
  const show = (from_s: number, to_s: number, at: (second: number) => Process[]): void => {
    for (let second = from_s; second <= to_s; second += 1) {
      rows = rowsOf(at(second));
      growth.take(NOW + second * 1000, rows);
    }
  };
  const grown = (): [number, number][] =>
    growth.growers(rows).map(({ row, bytes_per_ms }) => [row.processes[0].pid, (bytes_per_ms * 1000) / GIB]);

  beforeEach(() => {
    growth = new Growth();
  });

  it('is told of those who grow, the fastest first', () => {
    show(0, 10, (s) => [holder(1, 20 + 0.5 * s), holder(2, 60), holder(3, 10 + 1.5 * s), holder(4, 50 - s)]);
    const [first, second, ...rest] = grown();
    expect([first?.[0], second?.[0], rest]).toEqual([3, 1, []]);
    expect(first?.[1]).toBeCloseTo(1.5, 6);
    expect(second?.[1]).toBeCloseTo(0.5, 6);
  });

  it('is not told of a few seconds', () => {
    show(0, 4, (s) => [holder(1, s)]);
    expect([grown(), growth.isReady]).toEqual([[], false]);
    show(5, 6, (s) => [holder(1, s)]);
    expect([grown().length, growth.isReady]).toEqual([1, true]);
  });

  it('is that of the last half minute', () => {
    show(0, 60, (s) => [holder(1, s)]);
    show(61, 95, (s) => [holder(1, 60 + 2 * (s - 60))]);
    expect(grown()[0]?.[1]).toBeCloseTo(2, 6);
  });

  it('counts a moment once, and begins anew with one who comes back', () => {
    show(0, 10, (s) => [holder(1, s)]);
    for (let again = 0; again < 50; again += 1) {
      growth.take(NOW + 10_000 + again, rowsOf([holder(1, 90)]));
    }
    expect(grown()[0]?.[1]).toBeCloseTo(1, 6);
    show(11, 11, () => []);
    show(12, 14, (s) => [holder(1, 5 * s)]);
    expect(grown()).toEqual([]);
  });
});
