import { describe, expect, it } from 'vitest';

import { ExtremeLines, isolateLine, toggleLine } from './legend';

const GPUS = ['0', '1', '2'];

describe('legend', () => {
  it('isolating a line twice shows all lines', () => {
    const alone = isolateLine(['host.cpu'], '1', GPUS);
    expect(alone).toEqual(['host.cpu', '0', '2']);
    expect(isolateLine(alone, '2', GPUS)).toEqual(['host.cpu', '0', '1']);
    expect(isolateLine(alone, '1', GPUS)).toEqual(['host.cpu']);
  });

  it('every line except the last can be hidden', () => {
    expect(toggleLine([], '1', GPUS)).toEqual(['1']);
    expect(toggleLine(['1'], '1', GPUS)).toEqual([]);
    expect(toggleLine(['x', '0', '1'], '2', GPUS)).toEqual(['x']);
  });

  it('named extremes change only by clear margin', () => {
    const extremes = new ExtremeLines();
    const of = (...values: number[]): string[] =>
      extremes.findIds(
        values.map((value, id) => ({ id: String(id), value })),
        100,
      );
    expect(of(50, 99, 0)).toEqual(['1', '2']);
    expect(of(100, 99, 0)).toEqual(['1', '2']);
    expect(of(100, 97, 0)).toEqual(['0', '2']);
    expect(of(NaN, 97, NaN)).toEqual(['1']);
    expect(of(NaN, NaN)).toEqual([]);
  });
});
