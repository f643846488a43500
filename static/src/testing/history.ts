/** History responses for tests: the power of a GPU, sampled or as means. */

import type { HistorySpan } from '../wire';

/**
 * Returns a span with the power of a GPU at each time in watts; `null` stands for a missing value.
 */
export function makeHistorySpan(
  changes: Partial<HistorySpan>,
  watts: readonly (number | null)[],
): HistorySpan {
  const { resolution_ms = 10_000, from_ms = 0 } = changes;
  const plus = (by: number): (number | null)[] =>
    watts.map((value) => (value === null ? null : value + by));
  const means = resolution_ms > 1000 && { min: plus(-10), max: plus(10) };
  return {
    from_ms,
    to_ms: from_ms + watts.length * resolution_ms,
    resolution_ms,
    oldest_ms: from_ms,
    storage: { on_disk: false, reach_ms: 6 * 3_600_000 },
    times_ms: watts.map((_, i) => from_ms + i * resolution_ms),
    gpus: [
      {
        uuid: 'GPU-0',
        index: 0,
        name: 'H200',
        metrics: { 'power.draw_watts': { values: [...watts], ...means } },
      },
    ],
    events: [],
    conditions: [],
    ...changes,
  };
}
