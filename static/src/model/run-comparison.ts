/**
 * Two runs side by side: what both measured, by workload and type of numbers, on whatever devices.
 */

import type { RunResult } from '../wire';

export interface ComparedRow {
  before: RunResult | null;
  after: RunResult | null;
  /** That of the two which is there. */
  either: RunResult;
}

/** All that one of them has, in the order of the first, then of the second. */
export function comparison(
  before: readonly RunResult[],
  after: readonly RunResult[],
): ComparedRow[] {
  const counterpart = (result: RunResult, among: readonly RunResult[]): RunResult | null =>
    among.find(({ id, dtype }) => id === result.id && dtype === result.dtype) ?? null;
  const first = before.map((result) => ({
    before: result,
    after: counterpart(result, after),
    either: result,
  }));
  const rest = after.filter((result) => counterpart(result, before) === null);
  return [...first, ...rest.map((result) => ({ before: null, after: result, either: result }))];
}
