/**
 * A side-by-side comparison of the results of two runs, by workload and element type, on any
 * devices.
 */

import type { RunResult } from '../wire';

export interface ComparedRow {
  before: RunResult | null;
  after: RunResult | null;
  /** The first result, or the second if there is no first. */
  either: RunResult;
}

/**
 * Returns a row for each result of either run, in the order of the first run, then of the second.
 */
export function compareRuns(
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
