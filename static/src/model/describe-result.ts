/** Texts about the results of runs, one per table column. */

import {
  bytesPerSecond,
  DASH,
  formatDecimal,
  microseconds,
  operationsPerSecond,
  percent,
} from '../lib/format';
import { plainText } from '../lib/text';
import { table, trans } from '../lib/translation';
import type { RunResult } from '../wire';
import { valueOf } from './reading';

/** A cell of the result table. */
export interface Part {
  text: string;
  /** Details, or the reason why the value is missing. */
  title: string;
  absent: boolean;
}

export type Column = 'workload' | 'rate' | 'last' | 'peak' | 'share' | 'time' | 'result';

export const COLUMNS = table((): Record<Column, string> => ({
  workload: trans.__('Workload'),
  rate: trans.__('Rate'),
  last: trans.__('Last result here'),
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
  return valueOf(countsOperations(result) ? result.operations_per_second : result.bytes_per_second);
}

/** Returns the change of a rate, such as `+1.2 %`. */
export function change(rate: number, before: number): string {
  const share = (rate / before - 1) * 100;
  return `${share < 0 ? '−' : '+'}${formatDecimal(Math.abs(share), 1)}\u00a0%`;
}

/** Describes a result and compares it with the last result of the same kind. */
export function describeResult(
  result: RunResult,
  last: RunResult | null,
): Record<Exclude<Column, 'workload'>, Part> {
  const { device_us, host_us, limit, peak_per_second, share } = result;
  const rate = (value: number): string => rateText(result, value);
  const now = rateOf(result);
  const before = last === null ? null : rateOf(last);
  return {
    rate: part(now, rate, trans.__('Median rate'), trans.__('Measures time only.')),
    last: part(
      before,
      (value) => (now === null ? rate(value) : `${rate(value)} (${change(now, value)})`),
      trans.__('The last result on a device of this name, and the change since then'),
      trans.__('No earlier result on a device of this name is known.'),
    ),
    peak: part(
      valueOf(peak_per_second),
      rate,
      trans.__('Limited by: %1', plainText(limit)),
      trans.__('The theoretical peak is not known.'),
    ),
    share: part(
      valueOf(share),
      (value) => percent(value * 100),
      trans.__('Share of the theoretical peak'),
      trans.__('The theoretical peak is not known.'),
    ),
    time:
      valueOf(device_us) === null
        ? part(
            valueOf(host_us),
            microseconds,
            trans.__('Median time, by the host clock, from the first call to completion'),
            trans.__('Not timed.'),
          )
        : part(valueOf(device_us), microseconds, trans.__('Median time, by the device clock'), ''),
    result: verified(result),
  };
}

export function rateText(result: RunResult, rate: number): string {
  return countsOperations(result)
    ? operationsPerSecond(rate, result.dtype === 'int8' ? 'OP' : 'FLOP')
    : bytesPerSecond(rate);
}

function countsOperations({ limit, bytes_per_second }: RunResult): boolean {
  return limit === 'compute' || valueOf(bytes_per_second) === null;
}

function part(
  value: number | null,
  format: (value: number) => string,
  title: string,
  why: string,
): Part {
  return value === null
    ? { text: DASH, title: why, absent: true }
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
