/** States in words. */

import { duration, since } from '../lib/format';
import type { Absence, Health, ThrottleReason } from '../wire';

/** How much a state matters: `quiet` is ordinary, `note` worth knowing, `warn` worth a look, `act` needs somebody. */
export type Level = 'quiet' | 'note' | 'warn' | 'act';

/** A state as it is shown. */
export interface Words {
  text: string;
  /** More of it, on hover. */
  title: string;
  level: Level;
}

/** Why a reading is a dash. */
export function absenceWords(absence: Absence): string {
  switch (absence.absent) {
    case 'not_supported':
      return 'not on this board or driver';
    case 'no_permission':
      return 'needs permission: ask the administrator of this machine';
    case 'gpu_lost':
      return 'GPU lost';
    case 'asleep':
      return 'asleep to save power';
    case 'no_answer':
      return 'the driver has not answered';
    case 'warming_up':
      return 'needs a second sample';
    case 'unknown':
      return 'unknown to the driver';
    case 'hidden':
      return "hidden: another user's";
    case 'driver_error':
      return `driver error ${String(absence.code)}`;
    default:
      return 'no reading';
  }
}

/** Why a GPU does not answer, and what to do; `null` where it does. */
export function healthWords(health: Health, nowMs: number): Words | null {
  switch (health.state) {
    case 'ok':
      return null;
    case 'lost':
      return {
        text: `lost since ${since(health.since_ms, nowMs)} – reboot the machine`,
        title: `This GPU has fallen off the bus, as the driver has said for ${duration(nowMs - health.since_ms)}.`,
        level: 'act',
      };
    case 'asleep':
      return {
        text: `asleep since ${since(health.since_ms, nowMs)}`,
        title: 'The system has switched this GPU off to save power. gpumon does not wake it.',
        level: 'quiet',
      };
    case 'hung':
      return {
        text: `no answer since ${since(health.since_ms, nowMs)} – the driver hangs`,
        title: `A call to the driver has not come back for ${duration(nowMs - health.since_ms)}. The values are the last known.`,
        level: 'act',
      };
    case 'failed':
      return {
        text: `cannot be opened since ${since(health.since_ms, nowMs)}: ${absenceWords(health.reason)}`,
        title: `The driver has refused to open this GPU for ${duration(nowMs - health.since_ms)}.`,
        level: 'act',
      };
  }
}

/** What holds the clocks where they are and is no concern; whatever is one, the server says as a condition. */
const RESTS: readonly (Words & { reason: ThrottleReason })[] = [
  {
    reason: 'applications_clocks_setting',
    text: 'clocks set',
    title: 'The clocks are held where somebody has set them.',
    level: 'quiet',
  },
  { reason: 'display_clock_setting', text: 'display clock', title: 'A display needs a fixed clock.', level: 'quiet' },
  { reason: 'gpu_idle', text: 'idle', title: 'Nothing runs, so the clocks rest.', level: 'quiet' },
];

/** Why the clocks are not at their highest, where that is as it should be; `null` where nothing is to be said. */
export function clockWords(reasons: readonly ThrottleReason[]): Words | null {
  return RESTS.find(({ reason }) => reasons.includes(reason)) ?? null;
}
