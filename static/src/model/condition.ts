/** What is the matter with a GPU: its conditions as they are shown. */

import { duration, since } from '../lib/format';
import { trans } from '../lib/translation';
import type { Condition, GpuSample, Severity } from '../wire';
import type { Level, Description } from './describe';
import { describeCondition } from './describe-condition';
import { valueOf } from './reading';

/** A condition as it is shown. */
export interface Concern extends Description {
  /** The same while it lasts. */
  key: string;
}

const LEVELS: Record<Severity, Level> = { notice: 'note', warning: 'warn', critical: 'act' };

/** How a severity is shown. */
export function severityLevel(severity: Severity): Level {
  // One that only a newer server knows is better shown than hidden.
  return (LEVELS as Partial<Record<string, Level>>)[severity] ?? 'note';
}

const RANKS: readonly Level[] = ['act', 'warn', 'note', 'quiet'];

/** A GPU's conditions, the worst first, and among equals the oldest; but for the forecast, which has words of its own. */
export function concernsOf(gpu: GpuSample | null, now_ms: number): Concern[] {
  const processes = (gpu === null ? null : valueOf(gpu.processes)) ?? [];
  const told = (gpu?.conditions ?? []).filter(({ condition }) => condition !== 'memory_filling');
  const oldestFirst = told.sort((a, b) => a.since_ms - b.since_ms);
  return worstFirst(
    oldestFirst.map((condition) => ({
      key: keyOf(condition),
      text: describeCondition(condition, processes, gpu),
      title: describeSince(condition, now_ms),
      level: severityLevel(condition.severity),
    })),
  );
}

/** Sorted by how much they matter; equals stay in their order. */
export function worstFirst(concerns: readonly Concern[]): Concern[] {
  return [...concerns].sort((a, b) => RANKS.indexOf(a.level) - RANKS.indexOf(b.level));
}

/** The worst of them; `null` where none is worse than a notice. */
export function gravest(levels: readonly Level[]): 'warn' | 'act' | null {
  if (levels.includes('act')) {
    return 'act';
  }
  return levels.includes('warn') ? 'warn' : null;
}

/** `since 10:42:07, for 26 min`, and how often where it comes again and again. */
function describeSince(condition: Condition, now_ms: number): string {
  const began = since(condition.since_ms, now_ms);
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
    since(condition.last_ms, now_ms),
  );
}

/** A condition is the same as long as it began at the same time; of Xids there is one for each code. */
function keyOf(condition: Condition): string {
  const kind = condition.condition === 'xid' ? `xid ${String(condition.code)}` : condition.condition;
  return `${kind} ${String(condition.since_ms)}`;
}
