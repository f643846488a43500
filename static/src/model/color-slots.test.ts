import { describe, expect, it } from 'vitest';

import { COLORS, ColorSlots } from './color-slots';

type Present = [holder: string, program: string, gpus: number[]];

function assigner(): (...present: Present[]) => Map<string, number> {
  const slots = new ColorSlots();
  return (...present) =>
    new Map(slots.assign(present.map(([holder, program, gpus]) => ({ holder, program, gpus }))));
}

const programs = (count: number, gpu: (i: number) => number = (i) => i): Present[] =>
  Array.from({ length: count }, (_, i) => [`h${i}`, `program ${i}`, [gpu(i)]]);

describe('program colors', () => {
  it('colors differ until all have textures', () => {
    const slots = [...assigner()(...programs(2 * COLORS)).values()];
    expect(new Set(slots.slice(0, COLORS))).toEqual(
      new Set(Array.from({ length: COLORS }, (_, i) => i)),
    );
    expect(new Set(slots).size).toBe(2 * COLORS);
  });

  it('colors are stable across starts and restarts', () => {
    const assign = assigner();
    const all = assign(...programs(5));
    const [first, , third] = programs(5) as [Present, Present, Present];
    expect([...assign(third, ['new', 'another', [0]], first)].slice(0, 1)).toEqual([
      ['h2', all.get('h2')],
    ]);
    expect(assign(['h2 again', 'program 2', [7]]).get('h2 again')).toBe(all.get('h2'));
  });

  it('colors are equal on all GPUs and pages', () => {
    const slots = assigner()(['a', 'train.py', [0]], ['b', 'train.py', [1]]);
    expect(slots.get('a')).toBe(slots.get('b'));
    expect(assigner()(['c', 'train.py', [3]]).get('c')).toBe(slots.get('a'));
  });

  it('two processes of one program differ in color', () => {
    const slots = assigner()(['a', 'train.py', [0]], ['b', 'train.py', [0, 1]]);
    expect(slots.get('a')).not.toBe(slots.get('b'));
  });

  it('ended program keeps its color reserved', () => {
    const slots = new ColorSlots();
    const present = programs(2 * COLORS).map(([holder, program, gpus]) => ({
      holder,
      program,
      gpus,
    }));
    const before = new Map(slots.assign(present));
    expect(slots.ofProgram('program 3')).toBe(before.get('h3'));
    slots.ofProgram('long gone');
    slots.assign([]);
    expect(new Map(slots.assign(present))).toEqual(before);
  });

  it('colors are reused after too many programs', () => {
    const assign = assigner();
    assign(...programs(2 * COLORS));
    const slots = assign(...programs(2 * COLORS - 1), ['late', 'late', [99]]);
    expect(new Set(slots.values()).size).toBe(2 * COLORS);
  });
});
