/** Words that compare a reading with a number: `memory>80GiB`, `utilization<10`, `idle>=1h`. */

import { own } from '../../lib/own';
import { trans } from '../../lib/translation';
import { units } from '../../lib/units';
import type { Readings } from './columns';

export type Comparison =
  | { test: (readings: Readings, idle_s: Float64Array, row: number) => boolean }
  /** What is wrong with it, with its cure. */
  | { mistake: string };

const WORD = /^([a-z]+)(>=|<=|>|<|=)(.*)$/;
const NUMBER = /^(\d+(?:\.\d*)?|\.\d+)([a-z%°]*)$/;

const PERCENT = { '%': 1 } as const;
const BYTES = {
  b: 1,
  kib: 1024,
  kb: 1e3,
  mib: 1024 ** 2,
  mb: 1e6,
  gib: 1024 ** 3,
  g: 1024 ** 3,
  gb: 1e9,
  tib: 1024 ** 4,
  tb: 1e12,
} as const;
const SECONDS = { s: 1, min: 60, m: 60, h: 3600, d: 86_400 } as const;

interface Quantity {
  read: (readings: Readings, idle_s: Float64Array, row: number) => number;
  units: Readonly<Record<string, number>>;
  /** What a number without a unit is counted in. */
  usual: string;
  /** What `%` is of; without it, there is none. */
  of?: (readings: Readings, row: number) => number;
}

const QUANTITIES: Readonly<Record<string, Quantity>> = {
  utilization: {
    read: ({ utilization }, _, row) => utilization[row] ?? NaN,
    units: PERCENT,
    usual: '%',
  },
  memory: {
    read: ({ memoryUsed }, _, row) => memoryUsed[row] ?? NaN,
    units: BYTES,
    usual: 'gib',
    of: ({ memoryTotal }, row) => memoryTotal[row] ?? NaN,
  },
  left: {
    read: ({ memoryTotal, memoryUsed }, _, row) =>
      (memoryTotal[row] ?? NaN) - (memoryUsed[row] ?? NaN),
    units: BYTES,
    usual: 'gib',
    of: ({ memoryTotal }, row) => memoryTotal[row] ?? NaN,
  },
  power: {
    read: ({ power }, _, row) => power[row] ?? NaN,
    units: { w: 1, kw: 1000 },
    usual: 'w',
    of: ({ powerLimit }, row) => powerLimit[row] ?? NaN,
  },
  temperature: {
    read: ({ temperature }, _, row) => temperature[row] ?? NaN,
    units: { c: 1, '°c': 1, f: 1, '°f': 1 },
    usual: '',
  },
  idle: { read: (_, idle_s, row) => idle_s[row] ?? NaN, units: SECONDS, usual: 'min' },
};

const OPERATORS: Readonly<Record<string, (value: number, than: number) => boolean>> = {
  '>': (value, than) => value > than,
  '>=': (value, than) => value >= than,
  '<': (value, than) => value < than,
  '<=': (value, than) => value <= than,
  '=': (value, than) => value === than,
};

/** `null` where a word compares nothing. */
export function comparison(word: string): Comparison | null {
  const [, name = '', sign = '', right = ''] = WORD.exec(word) ?? [];
  const compare = OPERATORS[sign];
  if (compare === undefined) {
    return null;
  }
  const names = Object.keys(QUANTITIES);
  const [quantity] = names.flatMap((known) => (known.startsWith(name) ? [QUANTITIES[known]] : []));
  if (quantity === undefined) {
    return {
      mistake: trans.__('%1: nothing is called %2. Compare %3.', word, name, names.join(', ')),
    };
  }
  const [, digits = '', unit = ''] = NUMBER.exec(right) ?? [];
  if (digits === '') {
    return { mistake: trans.__('%1: a number has to follow %2, as in memory>80GiB.', word, sign) };
  }
  const number = Number(digits);
  const { read, of } = quantity;
  if (unit === '%' && of !== undefined) {
    return {
      test: (all, idle_s, row) => compare((read(all, idle_s, row) / of(all, row)) * 100, number),
    };
  }
  const than = inUnit(number, unit || quantity.usual, quantity);
  if (than === null) {
    const known = [...(of === undefined ? [] : ['%']), ...Object.keys(quantity.units)].filter(
      (one) => one !== '',
    );
    return {
      mistake: trans.__('%1: there is no unit %2 here. Use %3.', word, unit, known.join(', ')),
    };
  }
  return { test: (all, idle_s, row) => compare(read(all, idle_s, row), than) };
}

/** A number in the unit of the column; `null` where the unit is another quantity's. */
function inUnit(number: number, unit: string, { units: known, usual }: Quantity): number | null {
  if (usual === '') {
    const isFahrenheit = unit === '' ? units().temperature === '°F' : unit.endsWith('f');
    return unit === '' || Object.hasOwn(known, unit)
      ? isFahrenheit
        ? (number - 32) / 1.8
        : number
      : null;
  }
  const scale = own(known, unit);
  return scale === undefined ? null : number * scale;
}
