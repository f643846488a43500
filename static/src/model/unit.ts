/** The units of values: their text and the range of their axes. */

import type { AxisEnds } from '../chart/axis';
import {
  axisTicks,
  bytesPerSecond,
  celsius,
  celsiusDifference,
  count,
  DASH,
  degrees,
  degreesBetween,
  energy,
  energyUnit,
  memoryNumber,
  memorySize,
  mhz,
  percent,
  rateUnit,
  significant,
  watts,
} from '../lib/format';
import { memoryUnitBytes, units } from '../lib/units';
import type { FieldUnit } from '../wire/fields';

export interface Unit extends AxisEnds {
  /** Returns a value with its unit: `78.2 GiB`. */
  text: (value: number) => string;
  number: (value: number) => string;
  /** Returns the axis labels of the values, all in the same format. */
  ticks: (values: readonly number[]) => string[];
}

/** The parts of a formatted value: the number, and its unit or limit. */
export interface Formatted {
  main: string;
  rest: string;
}

export const PERCENT: Unit = { ...plain(percent, '%'), ceiling: 100, bounded: true };
export const MEMORY: Unit = {
  ...plain(memorySize),
  number: memoryNumber,
  ticks: (values) => axisTicks(values, memoryUnitBytes(), units().memory),
  get ceiling() {
    return memoryUnitBytes();
  },
  get base() {
    return memoryUnitBytes();
  },
};

/** The units of the catalog's fields. */
export const UNITS: Record<FieldUnit, Unit> = {
  percent: PERCENT,
  bytes: MEMORY,
  watts: { ...plain(watts, 'W'), number: count, ceiling: 100 },
  joules: {
    ...plain(energy),
    ticks: (values) => axisTicks(values, ...energyUnit(Math.max(...values))),
  },
  celsius: {
    ...plain(celsius),
    ticks: (values) => axisTicks(values.map(degrees), 1, units().temperature),
    floor: 20,
    ceiling: 100,
  },
  celsiusDifference: {
    ...plain(celsiusDifference),
    ticks: (values) => axisTicks(values.map(degreesBetween), 1, units().temperature),
    ceiling: 50,
  },
  megahertz: { ...plain(mhz, 'MHz'), ceiling: 1000 },
  bytesPerSecond: {
    ...plain(bytesPerSecond),
    ticks: (values) => axisTicks(values, ...rateUnit(Math.max(...values))),
    ceiling: 1e6,
  },
  count: plain((value) => (Number.isInteger(value) ? count(value) : significant(value))),
};

/** Returns the parts of a value, with a dash if the value is `null`. */
export function formatted(unit: Unit, value: number | null, limit: number | null): Formatted {
  if (limit === null) {
    return { main: value === null ? DASH : unit.text(value), rest: '' };
  }
  return { main: value === null ? DASH : unit.number(value), rest: `/ ${unit.text(limit)}` };
}

function plain(text: (value: number) => string, name = ''): Unit {
  const ticks = (values: readonly number[]): string[] => axisTicks(values, 1, name);
  return { text, number: text, ticks, floor: 0, ceiling: 1, base: 1, bounded: false };
}
