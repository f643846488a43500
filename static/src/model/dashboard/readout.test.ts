import { describe, expect, it } from 'vitest';

import { setLocale } from '../../lib/format';
import { UNITS } from '../unit';
import {
  ExtremeLines,
  isolateLine,
  toggleLine,
  tooltipValues,
  nearestLineId,
  formatReadingTime,
  formatRange,
  formatSpan,
} from './readout';

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
    expect(nearestLineId(LINES, 62, 5)).toBe('3');
    expect(nearestLineId(LINES, 75, 5)).toBe(null);
  });
});

const NOON = new Date(2026, 10, 20, 12, 0, 7).getTime();
const HOUR = 3_600_000;

it('reading time shows date or span of mean', () => {
  expect(formatReadingTime(NOON, 0, NOON + HOUR)).toBe('12:00:07');
  expect(formatReadingTime(NOON, 0, NOON + 20 * HOUR)).toBe('Nov 20, 2026 12:00:07');
  expect(formatReadingTime(NOON, 10_000, NOON)).toBe('12:00:00 – 12:00:10');
  expect(formatReadingTime(NOON, 900_000, NOON + 20 * HOUR)).toBe('Nov 20, 2026 12:00 – 12:15');
});

it('span label has end date or seconds', () => {
  expect(formatSpan(NOON, NOON + 9000, NOON + HOUR)).toEqual(['12:00:07', '12:00:16']);
  expect(formatSpan(NOON, NOON + 9000, NOON + 30 * HOUR)).toEqual([
    'Nov 20, 2026 12:00:07',
    '12:00:16',
  ]);
  expect(formatSpan(NOON, NOON + HOUR, NOON + 2 * HOUR)).toEqual(['12:00', '13:00']);
  expect(formatSpan(NOON - 24 * HOUR, NOON, NOON)).toEqual(['Nov 19, 2026 12:00', '12:00']);
  expect(formatSpan(NOON - 24 * HOUR, NOON, NOON + 24 * HOUR)).toEqual([
    'Nov 19, 2026 12:00',
    'Nov 20, 2026 12:00',
  ]);
});

it('range label shows a common unit once', () => {
  const plain = (text: string): string => text.replaceAll('\u00a0', ' ');
  expect(plain(formatRange(UNITS.percent, [71, 100]))).toBe('71 – 100 %');
  expect(plain(formatRange(UNITS.bytesPerSecond, [3e5, 2e9]))).toBe('300 kB/s – 2.00 GB/s');
  expect(formatRange(UNITS.percent, [71.1, 71.2])).toBe('');
  expect(formatRange(UNITS.watts, null)).toBe('');
});

it('range label keeps spaces between thousands', () => {
  setLocale('ru');
  const text = formatRange(UNITS.megahertz, [1980, 2980]);
  setLocale('en');
  expect(text.replaceAll('\u00a0', ' ')).toBe('1 980 – 2 980 MHz');
});
