/** Power, energy and heat. */

import { celsius, count, DASH, kilowattHours, percent, watts } from '../../lib/format';
import { table, trans } from '../../lib/translation';
import type { Fan, Reading } from '../../wire';
import { valueOf } from '../reading';
import { list, now, slow, formatReading, type DetailGroup } from './detail';

export const POWER = table((): DetailGroup => ({
  title: trans.__('Power and temperature'),
  details: [
    { id: 'power.instant_watts', label: trans.__('Instant power'), read: now((gpu) => gpu.power.instant_watts, watts) },
    {
      id: 'power.average_watts',
      label: trans.__('Average power (1 s)'),
      read: now((gpu) => gpu.power.average_watts, watts),
    },
    {
      id: 'power.limit_watts',
      label: trans.__('Power limit'),
      read: now((gpu) => gpu.power.limit_watts, watts),
      rest: ({ board }) => {
        const min = valueOf(board.power_limits.min_watts);
        const max = valueOf(board.power_limits.max_watts);
        return min === null || max === null ? '' : trans.__('of %1', `${count(min)}–${watts(max)}`);
      },
    },
    {
      id: 'board.power_limits.default_watts',
      label: trans.__('Default limit'),
      read: ({ board }) => formatReading(board.power_limits.default_watts, watts),
    },
    {
      id: 'power.energy_joules_total',
      label: trans.__('Energy'),
      read: now((gpu) => gpu.power.energy_joules_total, kilowattHours),
    },
    {
      id: 'temperature.memory_celsius',
      label: trans.__('Memory temperature'),
      read: now((gpu) => gpu.temperature.memory_celsius, celsius),
      rest: ({ board }) => {
        const max = valueOf(board.thresholds.memory_max_celsius);
        return max === null ? '' : trans.__('of %1', celsius(max));
      },
    },
    {
      id: 'temperature.margin_celsius',
      label: trans.__('Thermal margin'),
      read: now((gpu) => gpu.temperature.margin_celsius, celsius),
    },
    {
      id: 'board.thresholds.slowdown_celsius',
      label: trans.__('Slowdown temperature'),
      read: ({ board }) => formatReading(board.thresholds.slowdown_celsius, celsius),
    },
    {
      id: 'board.thresholds.shutdown_celsius',
      label: trans.__('Shutdown temperature'),
      read: ({ board }) => formatReading(board.thresholds.shutdown_celsius, celsius),
    },
    {
      id: 'fans',
      label: trans.__('Fans'),
      read: (gpu) => {
        const each = gpu.details === null ? null : valueOf(gpu.details.fans);
        return each === null || each.length === 0
          ? now(({ fan_percent }) => fan_percent, percent)(gpu)
          : slow(({ fans }) => fans, describeFan)(gpu);
      },
    },
  ],
}));

function describeFan(fans: readonly Fan[]): string {
  return list(fans.map((fan) => `${share(fan.speed_percent)}${turns(fan.rpm)}`));
}

function share(reading: Reading<number>): string {
  const value = valueOf(reading);
  return value === null ? DASH : percent(value);
}

function turns(reading: Reading<number>): string {
  const value = valueOf(reading);
  return value === null ? '' : ` (${trans.__('%1 rpm', count(value))})`;
}
