/** Texts about the results of runs, one per table column. */

import {
  formatBytesPerSecond,
  DASH,
  formatDecimal,
  formatMicroseconds,
  formatOperationsPerSecond,
  formatPercent,
} from '../lib/format';
import { plainText } from '../lib/text';
import { lazyTexts, trans } from '../lib/translation';
import type { RunResult } from '../wire';
import { valueOf } from './reading';

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
  return valueOf(countsOperations(result) ? result.operations_per_second : result.bytes_per_second);
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
  return countsOperations(result)
    ? formatOperationsPerSecond(rate, result.dtype === 'int8' ? 'OP' : 'FLOP')
    : formatBytesPerSecond(rate);
}

function countsOperations({ limit, bytes_per_second }: RunResult): boolean {
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
