/** Texts about the states of GPUs. */

import { formatDuration, formatTimeWithDateUnlessToday } from '../lib/format';
import { findOwnProperty } from '../lib/collections';
import { trans } from '../lib/translation';
import type { Absence, Health, Severity, ThrottleReason } from '../wire';
import { ABSENCES, describeReasons, ORDINARY_REASONS } from '../wire/texts';

/** The severity of a state; `none` for a normal state. */
export type Level = Severity | 'none';

export interface Description {
  text: string;
  /** Details for a hover text. */
  title: string;
  level: Level;
}

/** Returns why a reading is missing. */
export function describeAbsence(absence: Absence): string {
  switch (absence.absent) {
    case 'driver_error':
      return trans.__('driver error %1', absence.code);
    case 'no_permission':
      return trans.__('needs permission: ask the administrator of this machine');
    default:
      return findOwnProperty(ABSENCES, absence.absent)?.() ?? trans.__('no reading');
  }
}

/** Describes why a GPU does not respond and how to fix it. Returns `null` if it responds. */
export function describeHealth(
  health: Health,
  nowMs: number,
): (Description & { short: string }) | null {
  if (health.state === 'ok') {
    return null;
  }
  const began = formatTimeWithDateUnlessToday(health.since_ms, nowMs);
  const lasted = formatDuration(nowMs - health.since_ms);
  switch (health.state) {
    case 'lost':
      return {
        text: trans.__('lost since %1 (reboot the machine)', began),
        short: trans.__('lost %1', began),
        title: trans.__(
          'The driver has reported for %1 that this GPU has fallen off the bus.',
          lasted,
        ),
        level: 'critical',
      };
    case 'asleep':
      return {
        text: trans.__('asleep since %1', began),
        short: trans.__('asleep'),
        title: trans.__('Power management has suspended this GPU. gpumon does not wake it.'),
        level: 'none',
      };
    case 'hung':
      return {
        text: trans.__('not responding since %1 (driver hang)', began),
        short: trans.__('not responding'),
        title: trans.__(
          'A driver call has not returned for %1. The values are the last known.',
          lasted,
        ),
        level: 'critical',
      };
    case 'failed':
      return {
        text: trans.__(
          'cannot be read since %1: %2',
          began,
          [health.meaning || describeAbsence(health.reason), health.advice]
            .filter(Boolean)
            .join('; '),
        ),
        short: trans.__('cannot be read'),
        title: trans.__('Every driver call about this GPU has failed for %1.', lasted),
        level: 'critical',
      };
  }
}

/** Returns the ordinary reason for reduced clocks, or `null` if there is none. */
export function describeClock(
  reasons: readonly ThrottleReason[],
): Pick<Description, 'text' | 'title'> | null {
  const [reason, title] = ORDINARY_REASONS.find(([ordinary]) => reasons.includes(ordinary)) ?? [];
  return reason === undefined || title === undefined
    ? null
    : { text: describeReasons([reason]), title: title() };
}
