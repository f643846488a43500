/** Runs with their results as files: one line for each result as CSV, all that is known as JSON. */

import type { RunDetails, RunResult } from '../wire';
import { valueOf } from './reading';

type Cell = string | number | boolean | null;

const COLUMNS: Record<string, (result: RunResult, run: RunDetails) => Cell> = {
  run: (_, { run }) => run,
  started: (_, { started_ms }) => new Date(started_ms).toISOString(),
  workload: ({ id }) => id,
  dtype: ({ dtype }) => dtype,
  device: ({ device }) => device,
  bytes_per_second: ({ bytes_per_second }) => valueOf(bytes_per_second),
  operations_per_second: ({ operations_per_second }) => valueOf(operations_per_second),
  peak_per_second: ({ peak_per_second }) => valueOf(peak_per_second),
  share_of_peak: ({ share }) => valueOf(share),
  limit: ({ limit }) => limit,
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
      .map((result) => Object.values(COLUMNS).map((read) => csvCell(read(result, run)))),
  );
  return [Object.keys(COLUMNS), ...lines].map((cells) => `${cells.join(',')}\r\n`).join('');
}

export function toJson(runs: readonly RunDetails[]): string {
  return `${JSON.stringify({ runs }, null, 2)}\n`;
}

/** As RFC 4180 has it. A name that a spreadsheet would take for a formula begins with an apostrophe. */
function csvCell(cell: Cell): string {
  if (typeof cell !== 'string') {
    return cell === null ? '' : String(cell);
  }
  const text = /^[=+\-@\t\r]/.test(cell) ? `'${cell}` : cell;
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}
