/** Alerts: the conditions of a GPU in the form in which they are shown. */

import { formatDuration, formatTimeWithDateUnlessToday } from '../lib/format';
import { joinParts, plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { Condition, GpuSample, Severity } from '../wire';
import { describeReasons } from '../wire/texts';
import type { Level, Description } from './describe';
import { describeCondition, summarizeCondition } from './describe-condition';
import { unifiedAdvice } from './memory';
import { valueOf } from './reading';

export interface Alert extends Description {
  /** A short form of the text. */
  short: string;
  /** The identifier of the alert, which stays the same while the alert lasts. */
  key: string;
}

/**
 * Returns the level of a severity. A severity that only a newer server knows is shown as a notice.
 */
export function severityLevel(severity: Severity): Level {
  return RANKS.includes(severity) ? severity : 'notice';
}

const RANKS: readonly Level[] = ['critical', 'warning', 'notice', 'none'];

/**
 * Describes ordinary throttling, which varies quickly and is shown separately. Returns `null` if
 * there is none.
 */
export function describeThrottling(
  gpu: GpuSample | null,
  now_ms: number,
): Pick<Description, 'text' | 'title'> | null {
  const condition = gpu?.conditions.find(isOrdinaryThrottling);
  return condition === undefined
    ? null
    : {
        text: describeReasons(condition.reasons),
        title: `${describeReasons(condition.reasons, condition)}\n${describeSince(condition, now_ms)}`,
      };
}

function isOrdinaryThrottling(
  condition: Condition,
): condition is Extract<Condition, { condition: 'throttled' }> {
  return condition.condition === 'throttled' && condition.severity === 'notice';
}

/**
 * Returns a GPU's conditions, the most severe first, then the oldest. The memory forecast and
 * ordinary throttling are shown elsewhere.
 */
export function listConditionAlerts(gpu: GpuSample | null, now_ms: number): Alert[] {
  const processes = valueOf(gpu?.processes) ?? [];
  const isElsewhere = (one: Condition): boolean =>
    one.condition === 'memory_filling' || isOrdinaryThrottling(one);
  const shown = (gpu?.conditions ?? []).filter((one) => !isElsewhere(one));
  const oldestFirst = shown.sort((a, b) => a.since_ms - b.since_ms);
  return sortBySeverity(
    oldestFirst.map((condition) => ({
      key: keyOf(condition),
      text: joinParts(
        [describeCondition(condition, processes), ...listAdvice(condition, gpu)],
        ' ',
      ),
      short: summarizeCondition(condition) ?? plainText(condition.text),
      title: describeSince(condition, now_ms),
      level: severityLevel(condition.severity),
    })),
  );
}

/** Returns advice for a condition that also depends on the GPU. */
function listAdvice({ condition }: Condition, gpu: GpuSample | null): string[] {
  return condition === 'memory_nearly_full' ? unifiedAdvice(gpu) : [];
}

/** Returns the rank of a level. A lower rank is more severe. */
export function levelRank(level: Level): number {
  return RANKS.indexOf(level);
}

/** Sorts by severity. Alerts of the same severity keep their order. */
export function sortBySeverity<T extends Pick<Alert, 'level'>>(alerts: readonly T[]): T[] {
  return [...alerts].sort((a, b) => levelRank(a.level) - levelRank(b.level));
}

/** Returns the most severe level, or `null` if none is more severe than a notice. */
export function worstLevel(levels: readonly Level[]): 'warning' | 'critical' | null {
  if (levels.includes('critical')) {
    return 'critical';
  }
  return levels.includes('warning') ? 'warning' : null;
}

/**
 * Returns a text such as `since 10:42:07, for 26 min`, with the number of times for a repeated Xid.
 */
function describeSince(condition: Condition, now_ms: number): string {
  const began = formatTimeWithDateUnlessToday(condition.since_ms, now_ms);
  const lasted = formatDuration(now_ms - condition.since_ms);
  if (condition.condition !== 'xid' || condition.count < 2) {
    return trans.__('since %1, for %2', began, lasted);
  }
  return trans._n(
    'since %2, for %3; %1 time, last at %4',
    'since %2, for %3; %1 times, last at %4',
    condition.count,
    began,
    lasted,
    formatTimeWithDateUnlessToday(condition.last_ms, now_ms),
  );
}

/** Returns the identifier of a condition: its kind and start time, and for an Xid also its code. */
function keyOf(condition: Condition): string {
  const kind = condition.condition === 'xid' ? `xid ${condition.code}` : condition.condition;
  return `${kind} ${condition.since_ms}`;
}
