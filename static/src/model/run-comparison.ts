/**
 * A side-by-side comparison of the results of two runs, by workload and element type, on any
 * devices.
 */

import type { RunResult } from '../wire';

export interface ComparedRow {
  before: RunResult | null;
  after: RunResult | null;
  /** The result of the first run, or of the second run if the first has none. */
  either: RunResult;
}

/**
 * Returns a row for each result of the two runs: the results of the first run in order, then those
 * that only the second run has.
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
