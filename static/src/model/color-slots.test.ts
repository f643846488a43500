import { describe, expect, it } from 'vitest';

import { COLOR_COUNT, ColorSlots } from './color-slots';

type PresentProgram = [holder: string, program: string, gpus: number[]];

function createAssigner(): (...present: PresentProgram[]) => Map<string, number> {
  const slots = new ColorSlots();
  return (...present) =>
    new Map(
      slots.assignSlots(present.map(([holder, program, gpus]) => ({ holder, program, gpus }))),
    );
}

const programs = (count: number, gpu: (i: number) => number = (i) => i): PresentProgram[] =>
  Array.from({ length: count }, (_, i) => [`h${i}`, `program ${i}`, [gpu(i)]]);

describe('program colors', () => {
  it('colors repeat only after all textures are used', () => {
    const slots = [...createAssigner()(...programs(2 * COLOR_COUNT)).values()];
    expect(new Set(slots.slice(0, COLOR_COUNT))).toEqual(
      new Set(Array.from({ length: COLOR_COUNT }, (_, i) => i)),
    );
    expect(new Set(slots).size).toBe(2 * COLOR_COUNT);
  });

  it('program keeps its color when other programs start', () => {
    const assign = createAssigner();
    const all = assign(...programs(5));
    const [first, , third] = programs(5) as [PresentProgram, PresentProgram, PresentProgram];
    expect([...assign(third, ['new', 'another', [0]], first)].slice(0, 1)).toEqual([
      ['h2', all.get('h2')],
    ]);
    expect(assign(['h2 again', 'program 2', [7]]).get('h2 again')).toBe(all.get('h2'));
  });

  it('colors are equal on all GPUs and pages', () => {
    const slots = createAssigner()(['a', 'train.py', [0]], ['b', 'train.py', [1]]);
    expect(slots.get('a')).toBe(slots.get('b'));
    expect(createAssigner()(['c', 'train.py', [3]]).get('c')).toBe(slots.get('a'));
  });

  it('two processes of one program differ in color', () => {
    const slots = createAssigner()(['a', 'train.py', [0]], ['b', 'train.py', [0, 1]]);
    expect(slots.get('a')).not.toBe(slots.get('b'));
  });

  it('ended program keeps its color reserved', () => {
    const slots = new ColorSlots();
    const present = programs(2 * COLOR_COUNT).map(([holder, program, gpus]) => ({
      holder,
      program,
      gpus,
    }));
    const before = new Map(slots.assignSlots(present));
    expect(slots.assignProgramSlot('program 3')).toBe(before.get('h3'));
    slots.assignProgramSlot('long gone');
    slots.assignSlots([]);
    expect(new Map(slots.assignSlots(present))).toEqual(before);
  });

  it('colors are reused after too many programs', () => {
    const assign = createAssigner();
    assign(...programs(2 * COLOR_COUNT));
    const slots = assign(...programs(2 * COLOR_COUNT - 1), ['late', 'late', [99]]);
    expect(new Set(slots.values()).size).toBe(2 * COLOR_COUNT);
  });
});
