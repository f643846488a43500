import { describe, expect, it } from 'vitest';

import { addLine, type Path } from './line';

class Said implements Path {
  readonly steps: string[] = [];
  moveTo(x: number, y: number): void {
    this.steps.push(`M${x},${y}`);
  }
  lineTo(x: number, y: number): void {
    this.steps.push(`L${x},${y}`);
  }
  closePath(): void {
    this.steps.push('Z');
  }
}

function way(times: number[], values: number[], ground: number | null = null): string {
  const said = new Said();
  addLine(said, times, values, 0, times.length, { x: (at) => at / 10, y: (value) => 100 - value }, ground);
  return said.steps.join(' ');
}

describe('a line', () => {
  it('goes from sample to sample', () => expect(way([0, 100, 200], [10, 20, 30])).toBe('M0,90 L10,80 L20,70'));

  it('leaves a hole open', () =>
    expect(way([0, 100, 200, 300, 400], [10, 20, NaN, 30, 40])).toBe('M0,90 L10,80 M30,70 L40,60'));

  it('shows a sample between two holes', () => expect(way([0, 100, 200], [NaN, 20, NaN])).toBe('M10,80 L10.01,80'));

  it('keeps the highest and the lowest of each column', () => {
    const times = Array.from({ length: 1000 }, (_, i) => i / 10);
    const values = times.map((_, i) => (i === 543 ? 99 : 1));
    const said = way(times, values);
    expect(said.split(' ').length).toBeLessThan(20);
    expect(said).toContain('L5,1 ');
  });

  it('is closed to the ground where it is filled, each part for itself', () => {
    expect(way([0, 100, 200, 300, 400], [10, 20, NaN, 30, 40], 100)).toBe(
      'M0,90 L10,80 L10,100 L0,100 Z M30,70 L40,60 L40,100 L30,100 Z',
    );
  });
});
