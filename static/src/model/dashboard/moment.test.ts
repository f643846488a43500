import { expect, it } from 'vitest';

import { setLocale } from '../../lib/format';
import { UNITS } from '../unit';
import { formatReadingTime, formatRange, formatSpan } from './moment';

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

it('range keeps numbers whose thousands have spaces', () => {
  setLocale('ru');
  const text = formatRange(UNITS.megahertz, [1980, 2980]);
  setLocale('en');
  expect(text.replaceAll('\u00a0', ' ')).toBe('1 980 – 2 980 MHz');
});
