import { afterEach, describe, expect, it } from 'vitest';

import * as format from './format';
import { chooseUnits } from './units';

/**
 * Replaces the no-break spaces between numbers and units, so that the expectations are easier to
 * read.
 */
function plain(text: string): string {
  return text.replaceAll('\u00a0', ' ');
}

const GIB = 1024 ** 3;

describe('axis labels', () => {
  it.each<[number[], number, string, string]>([
    [[0, 50, 100], 1, '%', '0 %, 50 %, 100 %'],
    [[0, 0.5e9, 1e9], 1e9, 'GB/s', '0.0 GB/s, 0.5 GB/s, 1.0 GB/s'],
    [[690, 690.05], 1, 'W', '690.00 W, 690.05 W'],
    [[2000], 1, 'MHz', '2,000 MHz'],
    [[0], 1, '', '0'],
  ])('labels of %j share unit and decimals', (values, scale, unit, texts) =>
    expect(format.axisTicks(values, scale, unit).map(plain).join(', ')).toBe(texts),
  );
});

describe('numbers', () => {
  it.each([
    [0, '0.00'],
    [0.412, '0.41'],
    [4.812, '4.81'],
    [9.996, '10.0'],
    [61.04, '61.0'],
    [99.96, '100'],
    [139.8, '140'],
    [1980, '1,980'],
    [1_234_567.8, '1,234,568'],
  ])('%d has three significant digits: %s', (value, text) =>
    expect(format.significant(value)).toBe(text),
  );

  it('numbers always have a unit', () => {
    expect(plain(format.percent(95.6))).toBe('96 %');
    expect(plain(format.memorySize(78.2 * GIB))).toBe('78.2 GiB');
    expect(plain(format.watts(1234.5))).toBe('1,235 W');
    expect(plain(format.celsius(64))).toBe('64 °C');
    expect(plain(format.celsiusDifference(-3))).toBe('-3 °C');
    expect(plain(format.mhz(1980))).toBe('1,980 MHz');
    expect(plain(format.memoryAmount(184 * 1024 ** 2))).toBe('184 MiB');
    expect(plain(format.memoryAmount(61 * GIB))).toBe('61.0 GiB');
    expect(plain(format.microseconds(5.5))).toBe('5.50 µs');
    expect(plain(format.operationsPerSecond(4.02e12, 'FLOP'))).toBe('4.02 TFLOP/s');
  });

  it('column values align and never round to zero', () => {
    const share = ({ main, rest }: { main: string; rest: string }): string =>
      plain(`${main} ${rest}`);
    expect(share(format.memoryShare(73.4 * GIB, 140 * GIB))).toBe('73 / 140 GiB');
    expect(share(format.memoryShare(3.14 * GIB, 8 * GIB))).toBe('3.14 / 8.00 GiB');
    expect(share(format.memoryShare(73.4 * GIB, null))).toBe('73 GiB');
    expect(plain(format.memoryColumn(61 * GIB))).toBe('61.0 GiB');
    expect(plain(format.memoryColumn(4.83 * GIB))).toBe('4.8 GiB');
    expect(plain(format.memoryColumn(8 * 1024 ** 2))).toBe('8 MiB');
    expect(plain(format.memoryColumn(1))).toBe('1 MiB');
    expect(plain(format.memoryColumn(0))).toBe('0.0 GiB');
  });

  it('rates use powers of ten', () => {
    expect(plain(format.bytesPerSecond(0))).toBe('0 kB/s');
    expect(plain(format.bytesPerSecond(812e3))).toBe('812 kB/s');
    expect(plain(format.bytesPerSecond(999_900))).toBe('1.00 MB/s');
    expect(plain(format.bytesPerSecond(1.2e9))).toBe('1.20 GB/s');
  });
});

describe('times', () => {
  it.each([
    [-5, '0 s'],
    [7400, '7 s'],
    [59_600, '1 min'],
    [26 * 60_000, '26 min'],
    [60 * 60_000, '1 h'],
    [134 * 60_000, '2 h 14 min'],
    [146 * 3_600_000, '6 d 2 h'],
  ])('%d ms is written as %s', (ms, text) => expect(plain(format.duration(ms))).toBe(text));

  it('times of other days have a date', () => {
    const then = new Date(2026, 10, 19, 23, 5, 9).getTime();
    expect(format.formatSince(then, new Date(2026, 10, 19, 23, 30).getTime())).toBe('23:05:09');
    expect(format.formatSince(then, new Date(2026, 10, 20, 0, 30).getTime())).toBe(
      'Nov 19, 2026 23:05:09',
    );
  });

  it('values use the selected units', () => {
    chooseUnits({ memory: 'GB', temperature: '°F' });
    try {
      expect(plain(format.memorySize(GIB))).toBe('1.07 GB');
      expect(plain(format.memoryColumn(8e6))).toBe('8 MB');
      expect(plain(format.memoryAmount(8e6))).toBe('8.00 MB');
      expect(plain(format.memoryTotal(null))).toBe('GB');
      expect(plain(format.celsius(100))).toBe('212 °F');
      expect(plain(format.celsiusDifference(10))).toBe('18 °F');
    } finally {
      chooseUnits({ memory: 'GiB', temperature: '°C' });
    }
    expect(plain(format.memorySize(GIB))).toBe('1.00 GiB');
  });
});

describe('other languages', () => {
  afterEach(() => format.setLocale('en-US'));

  it.each([
    ['de', '1.980,5', '4,81 GiB', '0,5 s', '19. Nov. 2026 23:05:09'],
    ['fr', '1\u202f980,5', '4,81 GiB', '0,5 s', '19 nov. 2026 23:05:09'],
    ['fi', '1 980,5', '4,81 GiB', '0,5 s', '19.11.2026 23.05.09'],
  ])('language %s has its own numbers and dates', (language, number, memory, seconds, date) => {
    format.setLocale(language);
    const then = new Date(2026, 10, 19, 23, 5, 9).getTime();
    expect([
      plain(format.formatDecimal(1980.5, 1)),
      plain(format.memorySize(4.81 * GIB)),
      plain(format.seconds(500)),
      format.dateAndTime(then),
    ]).toEqual([number, memory, seconds, date]);
  });

  it('values are isolated in right-to-left languages', () => {
    format.setLocale('ar');
    expect(plain(format.memorySize(61 * GIB))).toBe('\u206661.0 GiB\u2069');
    expect(plain(format.duration(134 * 60_000))).toBe('\u20662 h 14 min\u2069');
    format.setLocale('he-IL');
    expect(plain(format.watts(96))).toBe('\u206696 W\u2069');
  });
});
