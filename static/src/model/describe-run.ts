/** Runs as text. */

import { bytesPerSecond, DASH, microseconds, operationsPerSecond, percent } from '../lib/format';
import { plainText } from '../lib/text';
import { table, trans } from '../lib/translation';
import type { RunPhase, RunResult, RunState, RunStatus, RunTopic } from '../wire';
import { valueOf } from './reading';
import type { Level } from './describe';

export interface Part {
  text: string;
  /** More of it, or why it is absent. */
  title: string;
  absent: boolean;
}

export const RUN_STATUS = table((): Record<RunStatus, string> => ({
  running: trans.__('running'),
  done: trans.__('done'),
  failed: trans.__('failed'),
  cancelled: trans.__('canceled'),
  lost: trans.__('lost'),
}));

const PHASES = table((): Record<RunPhase, string> => ({
  preparing: trans.__('preparing'),
  checking: trans.__('checking'),
  warming_up: trans.__('warming up'),
  measuring: trans.__('measuring'),
  verifying: trans.__('verifying'),
  holding: trans.__('holding memory'),
  giving_back: trans.__('freeing memory'),
  other: trans.__('working'),
}));

export const RUN_TOPICS = table((): Record<RunTopic, string> => ({
  step: '',
  cause: trans.__('Cause'),
  cure: trans.__('Fix'),
  lesson: trans.__('Takeaway'),
  proof: trans.__('Verification'),
  other: '',
}));

export const RUN_LEVEL: Record<RunStatus, Level | 'done'> = {
  running: 'notice',
  done: 'done',
  failed: 'critical',
  cancelled: 'none',
  lost: 'warning',
};

export function titleOf({ title }: RunState): string {
  return plainText(title) || trans.__('run in a terminal');
}

/** `triad, 2 of 13: measuring`. */
export function describeStep({ step, steps }: RunState): string {
  if (step === null) {
    return trans.__('starting');
  }
  const phase = PHASES()[step.phase];
  const id = plainText(step.id);
  return steps > 1 ? trans.__('%1, %2 of %3: %4', id, step.number + 1, steps, phase) : trans.__('%1: %2', id, phase);
}

/** How far all of it is, from 0 to 1; `null` where nobody knows. */
export function shareOf({ step, steps, share }: RunState): number | null {
  return step === null || steps === 0 || (steps === 1 && share === null)
    ? null
    : Math.min(1, (step.number + (share ?? 0)) / steps);
}

/** What a result says, in the order in which it is read. */
export function resultParts(result: RunResult): Part[] {
  const bytes = valueOf(result.bytes_per_second);
  const operations = valueOf(result.operations_per_second);
  const counts = result.limit === 'compute' || bytes === null;
  return [
    part(
      trans.__('rate'),
      counts ? operations : bytes,
      (rate) => (counts ? operationsPerSecond(rate, result.dtype === 'int8' ? 'OP' : 'FLOP') : bytesPerSecond(rate)),
      trans.__('Median rate'),
      trans.__('Measures time only.'),
    ),
    part(
      trans.__('of peak'),
      valueOf(result.share),
      (share) => trans.__('%1 of peak', percent(share * 100)),
      trans.__('Share of the theoretical peak, limited by: %1', plainText(result.limit)),
      trans.__('The theoretical peak is not known.'),
    ),
    part(
      trans.__('device time'),
      valueOf(result.device_us),
      (us) => trans.__('%1 device time', microseconds(us)),
      trans.__('Median time, by the device clock'),
      trans.__('Not timed, or no device clock (CPU).'),
    ),
    part(
      trans.__('host time'),
      valueOf(result.host_us),
      (us) => trans.__('%1 host time', microseconds(us)),
      trans.__('Median time, by the host clock, from the first call to completion'),
      trans.__('Not timed.'),
    ),
    verified(result),
  ];
}

function part(name: string, value: number | null, format: (value: number) => string, title: string, why: string): Part {
  return value === null
    ? { text: `${name} ${DASH}`, title: why, absent: true }
    : { text: format(value), title, absent: false };
}

function verified({ verified, checked, wrong, partial }: RunResult): Part {
  if (!verified) {
    const title = trans.__('%1 of %2 elements mismatch, or none were checked.', wrong, checked);
    return { text: trans.__('mismatch'), title, absent: false };
  }
  return {
    text: partial ? trans.__('verified, stopped early') : trans.__('verified'),
    title: trans.__('All %1 elements of the result were checked.', checked),
    absent: false,
  };
}
