/** States as text. */

import { duration, since } from '../lib/format';
import { table, trans } from '../lib/translation';
import type { Absence, Health, Severity, ThrottleReason } from '../wire';

/** The severity of a state; `none` where it is ordinary. */
export type Level = Severity | 'none';

export interface Description {
  text: string;
  /** More of it, on hover. */
  title: string;
  level: Level;
}

/** Why a reading is a dash. */
export function describeAbsence(absence: Absence): string {
  switch (absence.absent) {
    case 'not_supported':
      return trans.__('not on this board or driver');
    case 'no_permission':
      return trans.__('needs permission: ask the administrator of this machine');
    case 'gpu_lost':
      return trans.__('GPU lost');
    case 'asleep':
      return trans.__('asleep to save power');
    case 'no_answer':
      return trans.__('the driver has not answered');
    case 'not_read_yet':
      return trans.__('not read yet');
    case 'warming_up':
      return trans.__('needs a second sample');
    case 'unknown':
      return trans.__('unknown to the driver');
    case 'hidden':
      return trans.__("hidden: another user's");
    case 'driver_error':
      return trans.__('driver error %1', absence.code);
    default:
      return trans.__('no reading');
  }
}

/** Why a GPU does not answer, and what to do; `null` where it does. */
export function describeHealth(health: Health, nowMs: number): Description | null {
  if (health.state === 'ok') {
    return null;
  }
  const began = since(health.since_ms, nowMs);
  const lasted = duration(nowMs - health.since_ms);
  switch (health.state) {
    case 'lost':
      return {
        text: trans.__('lost since %1 (reboot the machine)', began),
        title: trans.__('The driver has reported for %1 that this GPU has fallen off the bus.', lasted),
        level: 'critical',
      };
    case 'asleep':
      return {
        text: trans.__('asleep since %1', began),
        title: trans.__('Power management has suspended this GPU. gpumon does not wake it.'),
        level: 'none',
      };
    case 'hung':
      return {
        text: trans.__('not responding since %1 (driver hang)', began),
        title: trans.__('A driver call has not returned for %1. The values are the last known.', lasted),
        level: 'critical',
      };
    case 'failed':
      return {
        text: trans.__('cannot be opened since %1: %2', began, describeAbsence(health.reason)),
        title: trans.__('The driver has refused to open this GPU for %1.', lasted),
        level: 'critical',
      };
  }
}

/** Ordinary reasons for reduced clocks. The others are conditions. */
const RESTS = table((): readonly (Description & { reason: ThrottleReason })[] => [
  {
    reason: 'applications_clocks_setting',
    text: trans.__('application clocks'),
    title: trans.__('Clocks are limited by the application clock setting.'),
    level: 'none',
  },
  {
    reason: 'display_clock_setting',
    text: trans.__('display clocks'),
    title: trans.__('Clocks are limited by the display clock setting.'),
    level: 'none',
  },
  {
    reason: 'gpu_idle',
    text: trans.__('idle'),
    title: trans.__('Nothing is running, so clocks are reduced.'),
    level: 'none',
  },
]);

/** The ordinary reason for reduced clocks; `null` where there is none. */
export function describeClock(reasons: readonly ThrottleReason[]): Description | null {
  return RESTS().find(({ reason }) => reasons.includes(reason)) ?? null;
}
