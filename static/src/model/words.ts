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

/** What is wrong with a GPU, and what to do; `null` where it answers. */
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

const THROTTLE: Record<ThrottleReason, Words> = {
  gpu_idle: { text: 'idle', title: 'Nothing runs, so the clocks rest.', level: 'quiet' },
  applications_clocks_setting: {
    text: 'clocks set',
    title: 'The clocks are held where somebody has set them.',
    level: 'note',
  },
  sw_power_cap: { text: 'power capped', title: 'The clocks are held down by the power limit.', level: 'note' },
  hw_slowdown: {
    text: 'hardware slowdown',
    title: 'The hardware holds the clocks down: heat, a power brake, or too fast a clock for the voltage.',
    level: 'warn',
  },
  sync_boost: {
    text: 'sync boost',
    title: 'It runs in step with the slowest GPU of its sync boost group.',
    level: 'note',
  },
  sw_thermal_slowdown: {
    text: 'thermally limited',
    title: 'The driver holds the clocks down, because the chip or its memory is near its temperature limit.',
    level: 'warn',
  },
  hw_thermal_slowdown: {
    text: 'overheated',
    title: 'The hardware has cut the clocks to half or less: check the cooling.',
    level: 'act',
  },
  hw_power_brake_slowdown: {
    text: 'power brake',
    title: "The system's power supply has asked for less: check the power supply.",
    level: 'act',
  },
  display_clock_setting: { text: 'display clock', title: 'A display needs a fixed clock.', level: 'note' },
};

const LEVELS: readonly Level[] = ['quiet', 'note', 'warn', 'act'];

/** What holds the clocks down, as one state, the gravest first; `null` where nothing does. */
export function throttleWords(reasons: readonly ThrottleReason[]): Words | null {
  const words = reasons
    .map((reason): Words | undefined => THROTTLE[reason])
    .filter((found) => found !== undefined)
    .sort((a, b) => LEVELS.indexOf(b.level) - LEVELS.indexOf(a.level));
  const gravest = words[0];
  if (gravest === undefined) {
    return null;
  }
  // "Idle" says nothing beside another reason.
  const told = gravest.level === 'quiet' ? words : words.filter((one) => one.level !== 'quiet');
  return {
    text: told.map((one) => one.text).join(', '),
    title: told.map((one) => one.title).join(' '),
    level: gravest.level,
  };
}
