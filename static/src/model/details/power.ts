/** The details of power, energy and heat. */

import {
  celsius,
  celsiusDifference,
  count,
  DASH,
  kilowattHours,
  percent,
  watts,
} from '../../lib/format';
import { joined } from '../../lib/text';
import { table, trans } from '../../lib/translation';
import type { Board, Fan, Reading } from '../../wire';
import { valueOf } from '../reading';
import { field, formatReading, outOf, slow, type Detail, type DetailGroup } from './detail';

export const POWER = table((): DetailGroup => ({
  title: trans.__('Power and temperature'),
  details: [
    field('power.instant_watts', watts),
    { ...field('power.average_watts', watts), label: trans.__('Average power (1 s)') },
    { ...field('power.limit_watts', watts), rest: ({ board }) => describeRange(board) },
    {
      id: 'board.power_limits.default_watts',
      label: trans.__('Default limit'),
      read: ({ board }) => formatReading(board.power_limits.default_watts, watts),
    },
    field('power.energy_joules_total', kilowattHours),
    {
      ...field('temperature.memory_celsius', celsius),
      rest: ({ board }) => outOf(board.thresholds.memory_max_celsius, celsius),
    },
    field('temperature.margin_celsius', celsiusDifference),
    threshold('slowdown_celsius', trans.__('Slowdown temperature')),
    threshold('shutdown_celsius', trans.__('Shutdown temperature')),
    fans(trans.__('Fans')),
  ],
}));

/** Returns a detail with the speed of each fan if the driver lists them, or with a single speed. */
function fans(label: string): Detail {
  const each = slow('fans', label, (details) => details.fans, describeFan);
  const one = field('fan_percent', percent);
  return { ...each, read: (gpu) => (valueOf(gpu.details?.fans)?.length ? each : one).read(gpu) };
}

function threshold(part: 'slowdown_celsius' | 'shutdown_celsius', label: string): Detail {
  const id = `board.thresholds.${part}`;
  return { id, label, read: ({ board }) => formatReading(board.thresholds[part], celsius) };
}

function describeRange({ power_limits }: Board): string {
  const min = valueOf(power_limits.min_watts);
  return min === null ? '' : outOf(power_limits.max_watts, (max) => `${count(min)}–${watts(max)}`);
}

function describeFan(fans: readonly Fan[]): string {
  return joined(fans.map((fan) => `${share(fan.speed_percent)}${turns(fan.rpm)}`));
}

function share(reading: Reading<number>): string {
  const value = valueOf(reading);
  return value === null ? DASH : percent(value);
}

function turns(reading: Reading<number>): string {
  const value = valueOf(reading);
  return value === null ? '' : ` (${trans.__('%1 rpm', count(value))})`;
}
