/** Units for sums over many GPUs, so that they are not shown as millions of watts or GiB. */

import { formatAxisTicks, formatCount, energyUnit, formatSignificant } from '../../lib/format';
import { memoryUnitBytes, units } from '../../lib/units';
import type { Unit } from '../unit';

type Scale = readonly [size: number, name: string];

const SPACE = '\u00a0';

/**
 * The values from which the next larger unit is used. `MANY_BYTES` is larger, because thousands of
 * GiB are still easy to read.
 */
const MANY_BYTES = 9999.5;
const MANY = 999.5;

/** Returns the unit for sums of memory up to `most_bytes`. */
export function memoryUnit(most_bytes: number): Unit {
  const step = units().memory === 'GiB' ? 1024 : 1000;
  const names = units().memory === 'GiB' ? ['GiB', 'TiB', 'PiB'] : ['GB', 'TB', 'PB'];
  const scales = names.map((name, i): Scale => [memoryUnitBytes() * step ** i, name]);
  return unitFor(most_bytes, scales, MANY_BYTES);
}

export function powerUnit(most_watts: number): Unit {
  // Power up to that of a large node is shown in watts.
  const scales: readonly Scale[] = [
    [1, 'W'],
    [1e3, 'kW'],
    [1e6, 'MW'],
  ];
  return unitFor(most_watts, most_watts < 9999.5 ? scales.slice(0, 1) : scales.slice(1));
}

/** Returns the unit of an energy. Energy over days is shown in watt-hours. */
export function energyUnitOf(most_joules: number): Unit {
  return unitFor(most_joules, [
    [3.6e6, 'kWh'],
    [3.6e9, 'MWh'],
    [3.6e12, 'GWh'],
  ]);
}

function unitFor(most: number, scales: readonly Scale[], many = MANY): Unit {
  const fits = scales.find(([size]) => most / size < many);
  const [size, name] = fits ?? scales.at(-1) ?? energyUnit(1);
  const number = (value: number): string =>
    size === 1 ? formatCount(value) : formatSignificant(value / size);
  return {
    number,
    text: (value) => `${number(value)}${SPACE}${name}`,
    ticks: (values) => formatAxisTicks(values, size, name),
    floor: 0,
    ceiling: size,
    base: size,
    bounded: false,
  };
}
