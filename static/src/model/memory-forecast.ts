/** Texts about the server's forecast of a GPU's memory. */

import { formatDuration, formatMemorySize } from '../lib/format';
import { trans } from '../lib/translation';
import type { Severity } from '../wire';
import type { Description } from './describe';
import type { GpuState } from './gpu';
import type { HolderRow } from './holders';

/** The minimum share of the total growth that a holder must cause to be named. */
const MIN_NAMED_SHARE = 0.2;
const MAX_NAMED = 2;
/**
 * If less time than this remains, the memory is shown as full, because it would be full before a
 * user has read the text.
 */
const MAX_FULL_MS = 5000;

export interface Grower {
  row: HolderRow;
  bytes_per_second: number;
}

export interface Forecast {
  left_ms: number;
  bytes_per_second: number;
  severity: Severity;
  /** The holders whose memory grows, the fastest first. */
  growers: Grower[];
}

/**
 * Returns the forecast of a GPU's memory, or `null` if it will not be full within `horizon_ms`.
 * `rows` are the holders.
 */
export function forecastOf(
  gpu: GpuState,
  rows: readonly HolderRow[],
  horizon_ms: number,
): Forecast | null {
  for (const condition of gpu.now?.conditions ?? []) {
    if (condition.condition === 'memory_filling' && condition.left_ms <= horizon_ms) {
      const { left_ms, bytes_per_second, severity, growing } = condition;
      const rates = new Map(growing.map((process) => [process.pid, process.bytes_per_second]));
      const growers = rows
        .filter((row) => row.gpu === gpu.index)
        .map((row) => ({
          row,
          bytes_per_second: row.processes.reduce((sum, { pid }) => sum + (rates.get(pid) ?? 0), 0),
        }))
        .filter((grower) => grower.bytes_per_second > 0)
        .sort((a, b) => b.bytes_per_second - a.bytes_per_second);
      return { left_ms, bytes_per_second, severity, growers };
    }
  }
  return null;
}

export function describeForecast(
  { left_ms, bytes_per_second, severity, growers }: Forecast,
  nameOf: (row: HolderRow) => string = (row) => row.name,
): Description {
  const named = growers.map(({ row, ...growth }) => ({ name: nameOf(row), ...growth }));
  return {
    text: describeFilling(left_ms, bytes_per_second, named),
    title: trans.__('Estimated from the growth over the last 30 s.'),
    level: severity === 'critical' ? 'critical' : 'warning',
  };
}

/**
 * Returns when the memory will be full, and the holders that cause most of the growth. `growers`
 * are sorted by growth, the fastest first.
 */
export function describeFilling(
  left_ms: number,
  bytes_per_second: number,
  growers: readonly { name: string; bytes_per_second: number }[],
): string {
  const named = growers
    .filter((one) => one.bytes_per_second >= MIN_NAMED_SHARE * bytes_per_second)
    .slice(0, MAX_NAMED);
  const [first, ...others] = named;
  const more = others.map((one) => `, ${one.name} ${formatRate(one.bytes_per_second)}`).join('');
  const speed = `${formatRate(first?.bytes_per_second ?? bytes_per_second)}${more}`;
  if (left_ms < MAX_FULL_MS) {
    return first === undefined
      ? trans.__('Memory full: grew %1', speed)
      : trans.__('Memory full: %1 grew %2', first.name, speed);
  }
  const left = formatRoughly(left_ms);
  return first === undefined
    ? trans.__('Memory full in about %1: grows %2', left, speed)
    : trans.__('Memory full in about %1: %2 grows %3', left, first.name, speed);
}

/** Returns the remaining time until the memory is full as a short text. */
export function summarizeFilling(left_ms: number): string {
  return left_ms < MAX_FULL_MS
    ? trans.__('memory full')
    : trans.__('full in %1', formatRoughly(left_ms));
}

function formatRate(bytes_per_second: number): string {
  return `${formatMemorySize(bytes_per_second)}/s`;
}

/** Rounds a forecast, which is not precise, to tens of seconds or minutes. */
function formatRoughly(ms: number): string {
  return ms < 60_000
    ? formatDuration(Math.ceil(ms / 10_000) * 10_000)
    : formatDuration(Math.round(ms / 60_000) * 60_000);
}
