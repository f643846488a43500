import { describe, expect, it } from 'vitest';

import { nearestIndex, Timeline } from './timeline';

const GAP_MS = 2500;

/** Converts the values to a list, with `null` for a gap. */
function toNullableList(values: Float64Array): (number | null)[] {
  return [...values].map((value) => (Number.isNaN(value) ? null : value));
}

function makeValues(value: number): Map<string, number> {
  return new Map([['a', value]]);
}

describe('timeline', () => {
  it('gap in time is a gap in values', () => {
    const line = new Timeline(100);
    line.push(1000, makeValues(1), GAP_MS);
    line.push(2000, makeValues(2), GAP_MS);
    line.push(9000, makeValues(3), GAP_MS);
    expect(toNullableList(line.times_ms)).toEqual([1000, 2000, 2001, 9000]);
    expect(toNullableList(line.values('a'))).toEqual([1, 2, null, 3]);
  });

  it('values at repeated or earlier times are ignored', () => {
    const line = new Timeline(100);
    line.push(2000, makeValues(1), GAP_MS);
    line.push(2000, makeValues(2), GAP_MS);
    line.push(1000, makeValues(3), GAP_MS);
    expect(toNullableList(line.values('a'))).toEqual([1]);
  });

  it('series added later has missing earlier values', () => {
    const line = new Timeline(100);
    line.push(1000, makeValues(1), GAP_MS);
    line.push(2000, new Map([['b', 5]]), GAP_MS);
    expect(toNullableList(line.values('a'))).toEqual([1, null]);
    expect(toNullableList(line.values('b'))).toEqual([null, 5]);
  });

  it('oldest values are dropped', () => {
    const line = new Timeline(1000);
    for (let i = 1; i <= 5000; i += 1) {
      line.push(i * 1000, makeValues(i), GAP_MS);
    }
    const { times_ms } = line;
    expect(times_ms.length).toBeGreaterThanOrEqual(1000);
    expect(times_ms.length).toBeLessThanOrEqual(1100);
    expect(times_ms.at(-1)).toBe(5_000_000);
    expect([...line.values('a')]).toEqual([...times_ms].map((time) => time / 1000));
  });

  it('timeline has no gaps between merged means', () => {
    const line = new Timeline(100);
    const column = new Map([['a', [1, 2, 3]]]);
    line.merge([5000, 15_000, 25_000], column, 450, 600, GAP_MS, { count: 3, reach_ms: 15_000 });
    line.push(33_000, makeValues(4), GAP_MS);
    line.push(34_000, makeValues(5), GAP_MS);
    line.push(39_000, makeValues(6), GAP_MS);
    const times = [5000, 15_000, 25_000, 33_000, 34_000, 34_001, 39_000];
    expect(toNullableList(line.times_ms)).toEqual(times);
    line.merge([15_000, 25_000, 33_000], column, 450, 600, GAP_MS, { count: 2, reach_ms: 15_000 });
    expect(toNullableList(line.times_ms)).toEqual(times);
    line.merge([60_000], column, 450, 600, GAP_MS);
    expect(toNullableList(line.times_ms)).toEqual([...times, 39_001, 60_000]);
  });

  it('merge adds missing values without replacing existing ones', () => {
    const line = new Timeline(100);
    line.push(1000, makeValues(1), GAP_MS);
    line.push(2000, makeValues(2), GAP_MS);
    line.push(9000, makeValues(9), GAP_MS);
    const missed = new Map([
      ['a', [70, 3, null, 60]],
      ['b', [5, 6, 7, 8]],
    ]);
    line.merge([1100, 3000, 8000, 9100], missed, 450, 600, GAP_MS);
    expect(toNullableList(line.times_ms)).toEqual([1000, 2000, 3000, 3001, 8000, 9000]);
    expect(toNullableList(line.values('a'))).toEqual([1, 2, 3, null, null, 9]);
    expect(toNullableList(line.values('b'))).toEqual([5, null, 6, null, 7, 8]);
  });
});

describe('timeline denser than the merged data', () => {
  it('values merged at coarser times leave no gaps', () => {
    const line = new Timeline(100);
    for (let i = 0; i <= 16; i += 1) {
      line.push(1000 + i * 250, makeValues(i), GAP_MS);
    }
    line.merge([1000, 2000, 3000, 4000, 5000], new Map([['b', [1, 2, 3, 4, 5]]]), 450, 600, GAP_MS);
    expect(toNullableList(line.values('b'))).not.toContain(null);
    expect(line.times_ms).toHaveLength(17);
  });
});

describe('index of a time', () => {
  it('index of nearest time is found', () => {
    const times = [1000, 2000, 3000];
    expect(nearestIndex(times, 1400, GAP_MS)).toBe(0);
    expect(nearestIndex(times, 1600, GAP_MS)).toBe(1);
    expect(nearestIndex(times, 4000, GAP_MS)).toBe(2);
  });

  it('no index is found for a distant time', () => {
    expect(nearestIndex([], 1000, GAP_MS)).toBe(-1);
    expect(nearestIndex([1000], 9000, GAP_MS)).toBe(-1);
  });
});
