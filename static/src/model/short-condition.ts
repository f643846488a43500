/** Conditions in a few words, as the terminal has them, for a line that is full of numbers. */

import { duration, memoryAmount, mhz, percent } from '../lib/format';
import { table, trans } from '../lib/translation';
import type { Condition, RecoveryAction } from '../wire';
import { describeReasons } from './describe-condition';
import { shortFilling } from './memory-forecast';

type Kind = Condition['condition'];

/** The compiler asks for a text of each kind that the server has. */
const TEXTS: { [K in Kind]: (condition: Extract<Condition, { condition: K }>) => string } = {
  xid: ({ code }) => `Xid ${code}`,
  throttled: ({ reasons }) => describeReasons(reasons),
  held_idle: ({ idle_ms }) => trans.__('idle %1', duration(idle_ms)),
  hardly_used: ({ sm_percent }) => trans.__('low SM use: %1', percent(sm_percent)),
  suspected_hang: () => trans.__('suspected hang'),
  held_by_nobody: ({ bytes }) => trans.__('%1, no process', memoryAmount(bytes)),
  slower_than_itself: ({ sm_mhz }) => trans.__('slow: %1', mhz(sm_mhz)),
  below_baseline: ({ median_us, baseline_us }) =>
    trans.__('bench %1x', (baseline_us / median_us).toFixed(2)),
  memory_nearly_full: ({ free_bytes }) => trans.__('%1 left', memoryAmount(free_bytes)),
  memory_filling: ({ left_ms }) => shortFilling(left_ms),
  ecc_uncorrected: ({ count }) => trans._n('%1 memory error', '%1 memory errors', count),
  row_remap: ({ failed }) =>
    failed ? trans.__('no spare memory rows') : trans.__('row remap pending'),
  page_retirement_pending: () => trans.__('page retire pending'),
  recovery_needed: ({ action }) => RECOVERY()[action],
  nv_link_down: ({ links }) =>
    trans._n('NVLink %2 down', '%1 NVLinks down', links.length, links[0]),
  pcie_degraded: ({ width, max_width }) => trans.__('PCIe x%1 of x%2', width, max_width),
};

const RECOVERY = table((): Record<RecoveryAction, string> => ({
  none: trans.__('nothing to recover'),
  gpu_reset: trans.__('reset required'),
  node_reboot: trans.__('reboot required'),
  drain_p2p: trans.__('peer-to-peer drain'),
  drain_and_reset: trans.__('drain, then reset'),
}));

/** `null` where only a newer server knows its kind. */
export function shortCondition(condition: Condition): string | null {
  const describe = TEXTS[condition.condition] as ((of: Condition) => string) | undefined;
  return describe?.(condition) ?? null;
}
