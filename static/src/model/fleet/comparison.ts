/**
 * Filter words that compare a reading with a number: `memory>80GiB`, `utilization<10`, `idle>=1h`.
 */

import { findOwnProperty } from '../../lib/own';
import { trans } from '../../lib/translation';
import { units } from '../../lib/units';
import type { Measures, Readings } from './columns';

export type Comparison =
  | { test: (measures: Measures, row: number) => boolean }
  /** The problem with the word, and how to fix it. */
  | { mistake: string };

const COMPARISON_PATTERN = /^([a-z]+)(>=|<=|>|<|=)(.*)$/;

const GIB = 1024 ** 3;
const BYTE_UNITS = {
  '': GIB,
  b: 1,
  kib: 1024,
  kb: 1e3,
  mib: 1024 ** 2,
  mb: 1e6,
  gib: GIB,
  g: GIB,
  gb: 1e9,
  tib: 1024 ** 4,
  tb: 1e12,
} as const;

interface Quantity {
  read: (measures: Measures, row: number) => number;
  units: Readonly<Record<string, number>>;
  /** The units that an error message lists. */
  known: readonly string[];
  /** The reading that `%` refers to. Without it, `%` is not a valid unit. */
  limit?: keyof Readings;
}

const QUANTITIES: Readonly<Record<string, Quantity>> = {
  utilization: { read: makeReadingReader('utilization'), units: { '': 1, '%': 1 }, known: ['%'] },
  memory: {
    read: makeReadingReader('memoryUsed'),
    units: BYTE_UNITS,
    known: ['%', 'MiB', 'GiB', 'TiB'],
    limit: 'memoryTotal',
  },
  left: {
    read: ({ readings }, row) =>
      (readings.memoryTotal[row] ?? NaN) - (readings.memoryUsed[row] ?? NaN),
    units: BYTE_UNITS,
    known: ['%', 'MiB', 'GiB', 'TiB'],
    limit: 'memoryTotal',
  },
  power: {
    read: makeReadingReader('power'),
    units: { '': 1, w: 1, kw: 1000 },
    known: ['%', 'W', 'kW'],
    limit: 'powerLimit',
  },
  temperature: {
    read: makeReadingReader('temperature'),
    units: { '': 1, c: 1, '°c': 1, f: 1, '°f': 1 },
    known: ['C', 'F'],
  },
  idle: {
    read: ({ idle_s }, row) => idle_s[row] ?? NaN,
    units: { '': 60, s: 1, min: 60, m: 60, h: 3600, d: 86_400 },
    known: ['s', 'min', 'h', 'd'],
  },
};

function makeReadingReader(key: keyof Readings): Quantity['read'] {
  return ({ readings }, row) => readings[key][row] ?? NaN;
}

const OPERATORS: Readonly<Record<string, (value: number, than: number) => boolean>> = {
  '>': (value, than) => value > than,
  '>=': (value, than) => value >= than,
  '<': (value, than) => value < than,
  '<=': (value, than) => value <= than,
  '=': (value, than) => value === than,
};

/** Returns the comparison of a filter word, or `null` if the word is not a comparison. */
export function parseComparison(word: string): Comparison | null {
  const [, name = '', sign = '', right = ''] = COMPARISON_PATTERN.exec(word) ?? [];
  const compare = OPERATORS[sign];
  if (compare === undefined) {
    return null;
  }
  const names = Object.keys(QUANTITIES);
  const quantity = QUANTITIES[names.find((known) => known.startsWith(name)) ?? ''];
  if (quantity === undefined) {
    return {
      mistake: trans.__(
        '%1: unknown quantity %2. Valid quantities: %3.',
        word,
        name,
        names.join(', '),
      ),
    };
  }
  const [digits = ''] = /^[\d.]*/.exec(right) ?? [];
  const unit = right.slice(digits.length);
  const number = digits === '' ? NaN : Number(digits);
  if (Number.isNaN(number)) {
    return {
      mistake: trans.__('%1: a number must follow %2, for example memory>80GiB.', word, sign),
    };
  }
  const { read, limit, known } = quantity;
  if (unit === '%' && limit !== undefined) {
    return {
      test: (all, row) =>
        compare((read(all, row) / (all.readings[limit][row] ?? NaN)) * 100, number),
    };
  }
  const scale = findOwnProperty(quantity.units, unit);
  if (scale === undefined) {
    return {
      mistake: trans.__('%1: invalid unit %2. Valid units: %3.', word, unit, known.join(', ')),
    };
  }
  const isFahrenheit =
    quantity === QUANTITIES.temperature &&
    (unit === '' ? units().temperature === '°F' : unit.endsWith('f'));
  const than = isFahrenheit ? (number - 32) / 1.8 : number * scale;
  return { test: (all, row) => compare(read(all, row), than) };
}
