/** The details of power, energy and heat. */

import {
  formatTemperature,
  formatTemperatureDifference,
  formatCount,
  DASH,
  formatKilowattHours,
  formatPercent,
  formatWatts,
} from '../../lib/format';
import { joinParts } from '../../lib/text';
import { lazyTexts, trans } from '../../lib/translation';
import type { Board, Fan } from '../../wire';
import { valueOf } from '../reading';
import {
  boardDetail,
  fieldDetail,
  describeMaximum,
  timestampedDetail,
  type Detail,
  type DetailGroup,
} from './detail';

export const POWER = lazyTexts((): DetailGroup => ({
  title: trans.__('Power and temperature'),
  details: [
    fieldDetail('power.instant_watts', formatWatts),
    { ...fieldDetail('power.average_watts', formatWatts), label: trans.__('Average power (1 s)') },
    {
      ...fieldDetail('power.limit_watts', formatWatts),
      rest: ({ board }) => describePowerLimitRange(board),
    },
    boardDetail(
      'power_limits.default_watts',
      trans.__('Default limit'),
      ({ power_limits }) => power_limits.default_watts,
      formatWatts,
    ),
    fieldDetail('power.energy_joules_total', formatKilowattHours),
    {
      ...fieldDetail('temperature.memory_celsius', formatTemperature),
      rest: ({ board }) => describeMaximum(board.thresholds.memory_max_celsius, formatTemperature),
    },
    fieldDetail('temperature.margin_celsius', formatTemperatureDifference),
    boardDetail(
      'thresholds.slowdown_celsius',
      trans.__('Slowdown temperature'),
      ({ thresholds }) => thresholds.slowdown_celsius,
      formatTemperature,
    ),
    boardDetail(
      'thresholds.shutdown_celsius',
      trans.__('Shutdown temperature'),
      ({ thresholds }) => thresholds.shutdown_celsius,
      formatTemperature,
    ),
    fanDetail(trans.__('Fans')),
  ],
}));

/**
 * Returns a detail with the speed of each fan if the driver lists the fans, and otherwise with a
 * single speed.
 */
function fanDetail(label: string): Detail {
  const each = timestampedDetail('fans', label, (details) => details.fans, describeFanSpeeds);
  const one = fieldDetail('fan_percent', formatPercent);
  return { ...each, read: (gpu) => (valueOf(gpu.details?.fans)?.length ? each : one).read(gpu) };
}

function describePowerLimitRange({ power_limits }: Board): string {
  const min = valueOf(power_limits.min_watts);
  return min === null
    ? ''
    : describeMaximum(power_limits.max_watts, (max) => `${formatCount(min)}–${formatWatts(max)}`);
}

function describeFanSpeeds(fans: readonly Fan[]): string {
  return joinParts(
    fans.map((fan) => {
      const percent = valueOf(fan.speed_percent);
      const rpm = valueOf(fan.rpm);
      const speed = percent === null ? DASH : formatPercent(percent);
      return rpm === null ? speed : `${speed} (${trans.__('%1 rpm', formatCount(rpm))})`;
    }),
  );
}
