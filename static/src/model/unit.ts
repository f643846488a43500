/** The units of values: their text and the range of their axes. */

import type { AxisEnds } from '../chart/axis';
import {
  formatAxisTicks,
  formatBytesPerSecond,
  formatTemperature,
  formatTemperatureDifference,
  formatCount,
  DASH,
  convertTemperature,
  convertTemperatureDifference,
  formatEnergy,
  energyUnit,
  formatMemoryNumber,
  formatMemorySize,
  formatMegahertz,
  formatPercent,
  rateUnit,
  formatSignificant,
  formatWatts,
  memoryUnitBytes,
  units,
} from '../lib/format';
import type { FieldUnit } from '../wire/fields';

export interface Unit extends AxisEnds {
  /** Returns a value with its unit: `78.2 GiB`. */
  text: (value: number) => string;
  number: (value: number) => string;
  /** Returns the axis labels of the values, all in the same format. */
  ticks: (values: readonly number[]) => string[];
}

/** The parts of a formatted value: the number, and its unit or limit. */
export interface FormattedValue {
  main: string;
  rest: string;
}

export const PERCENT: Unit = { ...makeUnit(formatPercent, '%'), ceiling: 100, bounded: true };
export const MEMORY: Unit = {
  ...makeUnit(formatMemorySize),
  number: formatMemoryNumber,
  ticks: (values) => formatAxisTicks(values, memoryUnitBytes(), units().memory),
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
  watts: { ...makeUnit(formatWatts, 'W'), number: formatCount, ceiling: 100 },
  joules: {
    ...makeUnit(formatEnergy),
    ticks: (values) => formatAxisTicks(values, ...energyUnit(Math.max(...values))),
  },
  celsius: {
    ...makeUnit(formatTemperature),
    ticks: (values) => formatAxisTicks(values.map(convertTemperature), 1, units().temperature),
    floor: 20,
    ceiling: 100,
  },
  celsiusDifference: {
    ...makeUnit(formatTemperatureDifference),
    ticks: (values) =>
      formatAxisTicks(values.map(convertTemperatureDifference), 1, units().temperature),
    ceiling: 50,
  },
  megahertz: { ...makeUnit(formatMegahertz, 'MHz'), ceiling: 1000 },
  bytesPerSecond: {
    ...makeUnit(formatBytesPerSecond),
    ticks: (values) => formatAxisTicks(values, ...rateUnit(Math.max(...values))),
    ceiling: 1e6,
  },
  count: makeUnit((value) =>
    Number.isInteger(value) ? formatCount(value) : formatSignificant(value),
  ),
};

/** Returns the parts of a value, with a dash if the value is `null`. */
export function formatValue(
  unit: Unit,
  value: number | null,
  limit: number | null,
): FormattedValue {
  if (limit === null) {
    return { main: value === null ? DASH : unit.text(value), rest: '' };
  }
  return { main: value === null ? DASH : unit.number(value), rest: `/ ${unit.text(limit)}` };
}

function makeUnit(text: (value: number) => string, name = ''): Unit {
  const ticks = (values: readonly number[]): string[] => formatAxisTicks(values, 1, name);
  return { text, number: text, ticks, floor: 0, ceiling: 1, base: 1, bounded: false };
}
