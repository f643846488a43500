/** Exports of runs with their results: CSV with one row per result, and JSON with all data. */

import { formatCsv, quoteCell } from '../lib/csv';
import type { RunDetails, RunResult } from '../wire';
import { valueOf } from './reading';

const COLUMNS: Record<
  string,
  (result: RunResult, run: RunDetails) => string | number | boolean | null
> = {
  run: (_, { run }) => quoteCell(run),
  started: (_, { started_ms }) => new Date(started_ms).toISOString(),
  workload: ({ id }) => quoteCell(id),
  dtype: ({ dtype }) => quoteCell(dtype),
  device: ({ device }) => quoteCell(device),
  bytes_per_second: ({ bytes_per_second }) => valueOf(bytes_per_second),
  operations_per_second: ({ operations_per_second }) => valueOf(operations_per_second),
  peak_per_second: ({ peak_per_second }) => valueOf(peak_per_second),
  share_of_peak: ({ share }) => valueOf(share),
  limit: ({ limit }) => quoteCell(limit),
  device_us: ({ device_us }) => valueOf(device_us),
  host_us: ({ host_us }) => valueOf(host_us),
  verified: ({ verified }) => verified,
  checked: ({ checked }) => checked,
  wrong: ({ wrong }) => wrong,
};

export function toCsv(runs: readonly RunDetails[]): string {
  const lines = runs.flatMap((run) =>
    run.all
      .filter((item) => item.item === 'result')
      .map((result) => Object.values(COLUMNS).map((read) => read(result, run))),
  );
  return formatCsv([Object.keys(COLUMNS), ...lines]);
}

export function toJson(runs: readonly RunDetails[]): string {
  return `${JSON.stringify({ runs }, null, 2)}\n`;
}
