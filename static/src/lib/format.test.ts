import { afterEach, describe, expect, it } from 'vitest';

import * as format from './format';
import { chooseUnits } from './format';

/**
 * Replaces the no-break spaces between numbers and units, so that the expectations are easier to
 * read.
 */
function withPlainSpaces(text: string): string {
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
    expect(format.formatAxisTicks(values, scale, unit).map(withPlainSpaces).join(', ')).toBe(texts),
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
    expect(format.formatSignificant(value)).toBe(text),
  );

  it('numbers always have a unit', () => {
    expect(withPlainSpaces(format.formatPercent(95.6))).toBe('96 %');
    expect(withPlainSpaces(format.formatMemorySize(78.2 * GIB))).toBe('78.2 GiB');
    expect(withPlainSpaces(format.formatWatts(1234.5))).toBe('1,235 W');
    expect(withPlainSpaces(format.formatTemperature(64))).toBe('64 °C');
    expect(withPlainSpaces(format.formatTemperatureDifference(-3))).toBe('-3 °C');
    expect(withPlainSpaces(format.formatMegahertz(1980))).toBe('1,980 MHz');
    expect(withPlainSpaces(format.formatMemoryAmount(184 * 1024 ** 2))).toBe('184 MiB');
    expect(withPlainSpaces(format.formatMemoryAmount(61 * GIB))).toBe('61.0 GiB');
    expect(withPlainSpaces(format.formatMicroseconds(5.5))).toBe('5.50 µs');
    expect(withPlainSpaces(format.formatOperationsPerSecond(4.02e12, 'FLOP'))).toBe('4.02 TFLOP/s');
  });

  it('column values align and never round to zero', () => {
    const share = ({ main, rest }: { main: string; rest: string }): string =>
      withPlainSpaces(`${main} ${rest}`);
    expect(share(format.formatMemoryShare(73.4 * GIB, 140 * GIB))).toBe('73 / 140 GiB');
    expect(share(format.formatMemoryShare(3.14 * GIB, 8 * GIB))).toBe('3.14 / 8.00 GiB');
    expect(share(format.formatMemoryShare(73.4 * GIB, null))).toBe('73 GiB');
    expect(withPlainSpaces(format.formatMemoryColumn(61 * GIB))).toBe('61.0 GiB');
    expect(withPlainSpaces(format.formatMemoryColumn(4.83 * GIB))).toBe('4.8 GiB');
    expect(withPlainSpaces(format.formatMemoryColumn(8 * 1024 ** 2))).toBe('8 MiB');
    expect(withPlainSpaces(format.formatMemoryColumn(1))).toBe('1 MiB');
    expect(withPlainSpaces(format.formatMemoryColumn(0))).toBe('0.0 GiB');
  });

  it('byte rates use decimal prefixes', () => {
    expect(withPlainSpaces(format.formatBytesPerSecond(0))).toBe('0 kB/s');
    expect(withPlainSpaces(format.formatBytesPerSecond(812e3))).toBe('812 kB/s');
    expect(withPlainSpaces(format.formatBytesPerSecond(999_900))).toBe('1.00 MB/s');
    expect(withPlainSpaces(format.formatBytesPerSecond(1.2e9))).toBe('1.20 GB/s');
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
  ])('%d ms is written as %s', (ms, text) =>
    expect(withPlainSpaces(format.formatDuration(ms))).toBe(text),
  );

  it('times of other days have a date', () => {
    const then = new Date(2026, 10, 19, 23, 5, 9).getTime();
    expect(
      format.formatTimeWithDateUnlessToday(then, new Date(2026, 10, 19, 23, 30).getTime()),
    ).toBe('23:05:09');
    expect(
      format.formatTimeWithDateUnlessToday(then, new Date(2026, 10, 20, 0, 30).getTime()),
    ).toBe('Nov 19, 2026 23:05:09');
  });

  it('values use the selected units', () => {
    chooseUnits({ memory: 'GB', temperature: '°F' });
    try {
      expect(withPlainSpaces(format.formatMemorySize(GIB))).toBe('1.07 GB');
      expect(withPlainSpaces(format.formatMemoryColumn(8e6))).toBe('8 MB');
      expect(withPlainSpaces(format.formatMemoryAmount(8e6))).toBe('8.00 MB');
      expect(withPlainSpaces(format.formatMemoryTotal(null))).toBe('GB');
      expect(withPlainSpaces(format.formatTemperature(100))).toBe('212 °F');
      expect(withPlainSpaces(format.formatTemperatureDifference(10))).toBe('18 °F');
    } finally {
      chooseUnits({ memory: 'GiB', temperature: '°C' });
    }
    expect(withPlainSpaces(format.formatMemorySize(GIB))).toBe('1.00 GiB');
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
      withPlainSpaces(format.formatDecimal(1980.5, 1)),
      withPlainSpaces(format.formatMemorySize(4.81 * GIB)),
      withPlainSpaces(format.formatSeconds(500)),
      format.formatDateAndTime(then),
    ]).toEqual([number, memory, seconds, date]);
  });

  it('values are isolated in right-to-left languages', () => {
    format.setLocale('ar');
    expect(withPlainSpaces(format.formatMemorySize(61 * GIB))).toBe('\u206661.0 GiB\u2069');
    expect(withPlainSpaces(format.formatDuration(134 * 60_000))).toBe('\u20662 h 14 min\u2069');
    format.setLocale('he-IL');
    expect(withPlainSpaces(format.formatWatts(96))).toBe('\u206696 W\u2069');
  });
});
