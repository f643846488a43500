import { describe, expect, it } from 'vitest';

import { placeAt, Timeline } from './timeline';

const GAP_MS = 2500;

function at(value: number): Map<string, number> {
  return new Map([['a', value]]);
}

describe('a timeline', () => {
  it('has a hole where time has one', () => {
    const line = new Timeline(100);
    line.push(1000, at(1), GAP_MS);
    line.push(2000, at(2), GAP_MS);
    line.push(9000, at(3), GAP_MS);
    expect(line.times_ms).toEqual([1000, 2000, 2001, 9000]);
    expect(line.values('a')).toEqual([1, 2, null, 3]);
  });

  it('takes no moment twice, and none from the past', () => {
    const line = new Timeline(100);
    line.push(2000, at(1), GAP_MS);
    line.push(2000, at(2), GAP_MS);
    line.push(1000, at(3), GAP_MS);
    expect(line.values('a')).toEqual([1]);
  });

  it('gives a series that comes late an empty past', () => {
    const line = new Timeline(100);
    line.push(1000, at(1), GAP_MS);
    line.push(2000, new Map([['b', 5]]), GAP_MS);
    expect(line.values('a')).toEqual([1, null]);
    expect(line.values('b')).toEqual([null, 5]);
  });

  it('forgets the oldest, and keeps handing out the same arrays', () => {
    const line = new Timeline(10);
    const { times_ms } = line;
    const values = line.values('a');
    for (let i = 1; i <= 50; i += 1) {
      line.push(i * 1000, at(i), GAP_MS);
    }
    expect(times_ms.length).toBeGreaterThanOrEqual(10);
    expect(times_ms.length).toBeLessThanOrEqual(11);
    expect(times_ms.at(-1)).toBe(50_000);
    expect(values).toHaveLength(times_ms.length);
    expect(values.at(-1)).toBe(50);
  });

  it('is replaced as a whole', () => {
    const line = new Timeline(100);
    line.push(1000, at(1), GAP_MS);
    line.push(1500, new Map([['gone', 1]]), GAP_MS);
    line.replace([5000, 6000, 20_000], new Map([['a', [7, null, 9]]]), GAP_MS);
    expect(line.times_ms).toEqual([5000, 6000, 6001, 20_000]);
    expect(line.values('a')).toEqual([7, null, null, 9]);
    expect(line.values('gone')).toEqual([null, null, null, null]);
  });
});

describe('the place at a time', () => {
  it('is the nearest one', () => {
    const times = [1000, 2000, 3000];
    expect(placeAt(times, 1400, GAP_MS)).toBe(0);
    expect(placeAt(times, 1600, GAP_MS)).toBe(1);
    expect(placeAt(times, 4000, GAP_MS)).toBe(2);
  });

  it('is none where nothing is near', () => {
    expect(placeAt([], 1000, GAP_MS)).toBe(-1);
    expect(placeAt([1000], 9000, GAP_MS)).toBe(-1);
  });
});
