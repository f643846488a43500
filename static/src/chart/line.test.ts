import { describe, expect, it } from 'vitest';

import { addLine, type Path } from './line';

class RecordedPath implements Path {
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

function drawPath(times: number[], values: number[], baseline: number | null = null): string {
  const said = new RecordedPath();
  addLine(
    said,
    times,
    values,
    0,
    times.length,
    { x: (at) => at / 10, y: (value) => 100 - value },
    baseline,
  );
  return said.steps.join(' ');
}

describe('chart line', () => {
  it('line connects samples', () =>
    expect(drawPath([0, 100, 200], [10, 20, 10])).toBe('M0,90 L10,80 L20,90'));

  it('line keeps only visible corners', () => {
    expect(drawPath([0, 100, 200, 300, 400], [10, 20, 30.2, 40, 0])).toBe('M0,90 L30,60 L40,100');
    const times = Array.from({ length: 3000 }, (_, i) => i);
    const values = times.map((at) => 50 + 40 * Math.sin(at / 300));
    const said = new RecordedPath();
    const y = (value: number): number => 100 - value;
    addLine(said, times, values, 0, times.length, { x: (at) => at / 10, y });
    expect(said.steps.length).toBeLessThan(60);
    const corners = said.steps.map((step) => step.slice(1).split(',').map(Number));
    times.forEach((at, i) => {
      const next = corners.findIndex(([x = 0]) => x >= at / 10);
      const [[x0 = 0, y0 = 0], [x1 = 0, y1 = 0]] = [
        corners[Math.max(0, next - 1)] ?? [],
        corners[next] ?? [],
      ];
      const drawn = x1 === x0 ? y1 : y0 + ((y1 - y0) * (at / 10 - x0)) / (x1 - x0);
      // The lowest and the highest value of a pixel column may be drawn half a column to the left
      // or right. This may move the line by up to a pixel.
      expect(next < 0 ? 0 : Math.abs(drawn - y(values[i] ?? NaN))).toBeLessThan(1);
    });
  });

  it('spike at edge of a column is kept', () => {
    const peaks = [
      [1, 1, 99, 1, 1, 1],
      [1, 1, 1, 99, 1, 1],
    ];
    for (const values of peaks) {
      expect(
        drawPath(
          [0, 1, 11, 12, 21, 22].map((at) => at * 10 - 5),
          values,
        ),
      ).toContain(',1 ');
    }
  });

  it('gap in values leaves gap in line', () =>
    expect(drawPath([0, 100, 200, 300, 400], [10, 20, NaN, 30, 40])).toBe(
      'M0,90 L10,80 M30,70 L40,60',
    ));

  it('single sample between gaps is visible', () =>
    expect(drawPath([0, 100, 200], [NaN, 20, NaN])).toBe('M10,80 L10.01,80'));

  it('extremes of each column are kept', () => {
    const times = Array.from({ length: 1000 }, (_, i) => i / 10);
    const values = times.map((_, i) => (i === 543 ? 99 : 1));
    const said = drawPath(times, values);
    expect(said.split(' ').length).toBeLessThan(20);
    expect(said).toContain('L5,1 ');
  });

  it('areas between gaps are closed separately at bottom', () => {
    expect(drawPath([0, 100, 200, 300, 400], [10, 20, NaN, 30, 40], 100)).toBe(
      'M0,90 L10,80 L10,100 L0,100 Z M30,70 L40,60 L40,100 L30,100 Z',
    );
  });
});
