import { describe, expect, it } from 'vitest';

import { tooltipValues, nearestLine } from './tooltip-values';

const LINES = [30, NaN, 90, 60, 10].map((value, i) => ({ id: String(i), value }));
const ids = (nearest: string | null, most: number): string[] =>
  tooltipValues(LINES, nearest, most).rows.map(({ id }) => id);

describe('tooltip', () => {
  it('tooltip lists highest values first', () => {
    expect(ids(null, 9)).toEqual(['2', '3', '0', '4']);
    expect(tooltipValues(LINES, null, 9).more).toBe(0);
  });

  it('tooltip includes the highest and the nearest line', () => {
    expect(ids(null, 2)).toEqual(['2', '3']);
    expect(ids('3', 2)).toEqual(['2', '3']);
    expect(ids('4', 2)).toEqual(['2', '4']);
    expect(tooltipValues(LINES, '4', 2).more).toBe(2);
  });

  it('distant line is not highlighted', () => {
    expect(nearestLine(LINES, 62, 5)).toBe('3');
    expect(nearestLine(LINES, 75, 5)).toBe(null);
  });
});
