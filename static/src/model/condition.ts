/** Alerts: the conditions of a GPU as they are shown. */

import { duration, formatSince } from '../lib/format';
import { joined, plainText } from '../lib/text';
import { trans } from '../lib/translation';
import type { Condition, GpuSample, Severity } from '../wire';
import { describeReasons } from '../wire/texts';
import type { Level, Description } from './describe';
import { describeCondition, shortCondition } from './describe-condition';
import { unifiedAdvice } from './memory';
import { valueOf } from './reading';

export interface Alert extends Description {
  /** The same in a few words. */
  short: string;
  /** The same while it lasts. */
  key: string;
}

/** The level of a severity. One that only a newer server knows is better shown than hidden. */
export function severityLevel(severity: Severity): Level {
  return RANKS.includes(severity) ? severity : 'notice';
}

const RANKS: readonly Level[] = ['critical', 'warning', 'notice', 'none'];

/**
 * What reduces the clocks as it should, which comes and goes and has a place of its own; `null`
 * where nothing does.
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
 * A GPU's conditions, the worst first, then the oldest; without the forecast and ordinary
 * throttling, which are shown for themselves.
 */
export function alertsOf(gpu: GpuSample | null, now_ms: number): Alert[] {
  const processes = valueOf(gpu?.processes) ?? [];
  const isElsewhere = (one: Condition): boolean =>
    one.condition === 'memory_filling' || isOrdinaryThrottling(one);
  const shown = (gpu?.conditions ?? []).filter((one) => !isElsewhere(one));
  const oldestFirst = shown.sort((a, b) => a.since_ms - b.since_ms);
  return worstFirst(
    oldestFirst.map((condition) => ({
      key: keyOf(condition),
      text: joined([describeCondition(condition, processes), ...adviceOn(condition, gpu)], ' '),
      short: shortCondition(condition) ?? plainText(condition.text),
      title: describeSince(condition, now_ms),
      level: severityLevel(condition.severity),
    })),
  );
}

/** Returns the advice that depends on the GPU, which the condition does not know. */
function adviceOn({ condition }: Condition, gpu: GpuSample | null): string[] {
  return condition === 'memory_nearly_full' ? unifiedAdvice(gpu) : [];
}

/** The lower, the worse. */
export function levelRank(level: Level): number {
  return RANKS.indexOf(level);
}

/** Sorted by how much they matter; equals stay in their order. */
export function worstFirst<T extends Pick<Alert, 'level'>>(alerts: readonly T[]): T[] {
  return [...alerts].sort((a, b) => levelRank(a.level) - levelRank(b.level));
}

/** The worst of them; `null` where none is worse than a notice. */
export function worstLevel(levels: readonly Level[]): 'warning' | 'critical' | null {
  if (levels.includes('critical')) {
    return 'critical';
  }
  return levels.includes('warning') ? 'warning' : null;
}

/** `since 10:42:07, for 26 min`, and how often where it comes again and again. */
function describeSince(condition: Condition, now_ms: number): string {
  const began = formatSince(condition.since_ms, now_ms);
  const lasted = duration(now_ms - condition.since_ms);
  if (condition.condition !== 'xid' || condition.count < 2) {
    return trans.__('since %1, for %2', began, lasted);
  }
  return trans._n(
    'since %2, for %3; %1 time, last at %4',
    'since %2, for %3; %1 times, last at %4',
    condition.count,
    began,
    lasted,
    formatSince(condition.last_ms, now_ms),
  );
}

/**
 * A condition is the same as long as it began at the same time; of Xids there is one for each code.
 */
function keyOf(condition: Condition): string {
  const kind = condition.condition === 'xid' ? `xid ${condition.code}` : condition.condition;
  return `${kind} ${condition.since_ms}`;
}
