/** Texts about runs and about their results. */

import {
  formatDuration,
  formatBytesPerSecond,
  DASH,
  formatDecimal,
  formatMicroseconds,
  formatOperationsPerSecond,
  formatPercent,
} from '../lib/format';
import { plainText } from '../lib/text';
import { lazyTexts, trans } from '../lib/translation';
import type { RunPhase, RunState, RunStatus, RunTopic, RunResult } from '../wire';
import type { Level } from './describe';
import { valueOf } from './reading';

export const RUN_STATUS = lazyTexts((): Record<RunStatus, string> => ({
  running: trans.__('running'),
  done: trans.__('done'),
  failed: trans.__('failed'),
  canceled: trans.__('canceled'),
  lost: trans.__('lost'),
}));

const PHASES = lazyTexts((): Record<RunPhase, string> => ({
  preparing: trans.__('preparing'),
  checking: trans.__('checking'),
  warming_up: trans.__('warming up'),
  measuring: trans.__('measuring'),
  verifying: trans.__('verifying'),
  holding: trans.__('holding memory'),
  giving_back: trans.__('freeing memory'),
  other: trans.__('working'),
}));

export const RUN_TOPICS = lazyTexts((): Record<RunTopic, string> => ({
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
  canceled: 'none',
  lost: 'warning',
};

export function titleOf({ title }: RunState): string {
  return plainText(title) || trans.__('run in a terminal');
}

/** Returns the devices of a run: `GPU 0, GPU 1`, or the name of a CPU. */
export function deviceNames({ devices }: RunState): string {
  return devices
    .map(({ index, name }) => (index === null ? plainText(name) : trans.__('GPU %1', index)))
    .join(', ');
}

/** Returns the state of a run, such as `triad, 2 of 13: measuring`. */
export function describeStep({ step, steps }: RunState): string {
  if (step === null) {
    return trans.__('starting');
  }
  const phase = PHASES()[step.phase];
  const id = plainText(step.id);
  return steps > 1
    ? trans.__('%1, %2 of %3: %4', id, step.number + 1, steps, phase)
    : trans.__('%1: %2', id, phase);
}

/** Returns the completed share of a run from 0 to 1, or `null` if it is unknown. */
export function completedShare({ step, steps, share }: RunState): number | null {
  return step === null || steps === 0 || (steps === 1 && share === null)
    ? null
    : Math.min(1, (step.number + (share ?? 0)) / steps);
}

/**
 * The remaining time is estimated only if at least this share of the run is completed. In runs with
 * several steps, the first step must also be completed.
 */
const MIN_SHARE = 0.05;

/** Returns the remaining time of a run in milliseconds, or `null` if it is unknown. */
export function remainingTime(state: RunState, now_ms: number): number | null {
  const { kind, step, steps, seconds, started_ms } = state;
  const asked_ms = (seconds ?? 0) * 1000;
  if (step === null || step.phase === 'giving_back') {
    return null;
  }
  if (step.phase === 'holding') {
    return seconds === null ? null : Math.max(0, step.since_ms + asked_ms - now_ms);
  }
  const share = completedShare(state);
  if (share === null || share < MIN_SHARE || (steps > 1 && step.number === 0)) {
    return null;
  }
  const elapsed_ms = now_ms - (steps > 1 ? started_ms : step.since_ms);
  // After the memory is full, an out-of-memory run keeps it allocated for the requested time.
  return (elapsed_ms * (1 - share)) / share + (kind === 'oom' ? asked_ms : 0);
}

/** Returns text such as `about 25 s left`, rounded according to the precision of the estimate. */
export function describeTimeLeft(left_ms: number): string {
  const step = left_ms < 10_000 ? 1000 : left_ms < 60_000 ? 5000 : 60_000;
  return trans.__('about %1 left', formatDuration(Math.max(1, Math.ceil(left_ms / step)) * step));
}

/** A cell of the result table. */
export interface ResultCell {
  text: string;
  /** The hover text: details, or the reason why the value is missing. */
  title: string;
  absent: boolean;
}

export type Column = 'workload' | 'rate' | 'last' | 'peak' | 'share' | 'time' | 'result';

export const COLUMNS = lazyTexts((): Record<Column, string> => ({
  workload: trans.__('Workload'),
  rate: trans.__('Rate'),
  last: trans.__('Previous result'),
  peak: trans.__('Theoretical peak'),
  share: trans.__('Of peak'),
  time: trans.__('Time'),
  result: trans.__('Result'),
}));

/**
 * Returns the key of comparable results: those with the same workload, element type and device
 * name.
 */
export function resultKey({ id, dtype, device }: RunResult): string {
  return [id, dtype, device].join('\n');
}

/** Returns the rate per second, or `null` if only the time was measured. */
export function rateOf(result: RunResult): number | null {
  return valueOf(isOperationRate(result) ? result.operations_per_second : result.bytes_per_second);
}

/** Returns the change of a rate, such as `+1.2 %`. */
export function formatChange(rate: number, before: number): string {
  const share = (rate / before - 1) * 100;
  return `${share < 0 ? '−' : '+'}${formatDecimal(Math.abs(share), 1)}\u00a0%`;
}

/** Describes a result and compares it with `last`, the previous result with the same key. */
export function describeResult(
  result: RunResult,
  last: RunResult | null,
): Record<Exclude<Column, 'workload'>, ResultCell> {
  const { device_us, host_us, limit, peak_per_second, share } = result;
  const rate = (value: number): string => rateText(result, value);
  const now = rateOf(result);
  const before = last === null ? null : rateOf(last);
  return {
    rate: makeCell(now, rate, trans.__('Median rate'), trans.__('Measures time only.')),
    last: makeCell(
      before,
      (value) => (now === null ? rate(value) : `${rate(value)} (${formatChange(now, value)})`),
      trans.__('The previous result on a device of this name, and the change since then'),
      trans.__('There is no previous result on a device of this name.'),
    ),
    peak: makeCell(
      valueOf(peak_per_second),
      rate,
      trans.__('Limited by: %1', plainText(limit)),
      trans.__('The theoretical peak is not known.'),
    ),
    share: makeCell(
      valueOf(share),
      (value) => formatPercent(value * 100),
      trans.__('Share of the theoretical peak'),
      trans.__('The theoretical peak is not known.'),
    ),
    time:
      valueOf(device_us) === null
        ? makeCell(
            valueOf(host_us),
            formatMicroseconds,
            trans.__('Median time, by the host clock, from the first call to completion'),
            trans.__('Not timed.'),
          )
        : makeCell(
            valueOf(device_us),
            formatMicroseconds,
            trans.__('Median time, by the device clock'),
            '',
          ),
    result: describeVerification(result),
  };
}

export function rateText(result: RunResult, rate: number): string {
  return isOperationRate(result)
    ? formatOperationsPerSecond(rate, result.dtype === 'int8' ? 'OP' : 'FLOP')
    : formatBytesPerSecond(rate);
}

function isOperationRate({ limit, bytes_per_second }: RunResult): boolean {
  return limit === 'compute' || valueOf(bytes_per_second) === null;
}

function makeCell(
  value: number | null,
  format: (value: number) => string,
  title: string,
  why: string,
): ResultCell {
  return value === null
    ? { text: DASH, title: why, absent: true }
    : { text: format(value), title, absent: false };
}

function describeVerification({ verified, checked, wrong, partial }: RunResult): ResultCell {
  if (!verified) {
    const title = trans.__(
      '%1 of %2 elements do not match the reference, or none were checked.',
      wrong,
      checked,
    );
    return { text: trans.__('mismatch'), title, absent: false };
  }
  return {
    text: partial ? trans.__('verified, stopped early') : trans.__('verified'),
    title: trans.__('All %1 elements of the result were checked.', checked),
    absent: false,
  };
}
