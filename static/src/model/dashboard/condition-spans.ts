/** The spans of conditions on each GPU, from events and the newest sample. */

import { groupBy } from '../../lib/collections';
import { memoizeLast } from '../../lib/memoize';
import type {
  Condition,
  ConditionSpan as PastCondition,
  Event,
  Health,
  ProcessRef,
  Sample,
} from '../../wire';
import { severityLevel, describeCondition } from '../alerts';
import { describeHealth, type Level } from '../describe';
import { valueOf } from '../reading';

export interface ConditionSpan {
  /**
   * Identifies a condition on a GPU. Events, samples and the server's history all have the same key
   * for it.
   */
  key: string;
  from_ms: number;
  to_ms: number;
  level: Level;
  text: string;
}

/**
 * Returns the spans of conditions on each GPU. A condition that has not ended lasts until `now_ms`,
 * or until the time at which its GPU became unreadable. An unreadable GPU is itself a condition.
 * `past` contains the conditions in the server's history.
 */
export function conditionSpans(
  events: readonly Event[],
  sample: Sample | null,
  now_ms: number,
  past: readonly PastCondition[] = [],
): Map<number, readonly ConditionSpan[]> {
  const byGpu = new Map<number, readonly ConditionSpan[]>(endedSpans(events));
  const byUuid = groupBy(past, ({ uuid }) => uuid);
  for (const { index, uuid, health, conditions, processes } of sample?.gpus ?? []) {
    const failure = healthSpan(health, now_ms);
    const end_ms = failure?.from_ms ?? now_ms;
    const lasting = conditions.map((condition) =>
      spanOf(condition, end_ms, valueOf(processes) ?? []),
    );
    const known = [...(byGpu.get(index) ?? []), ...lasting];
    const keys = new Set(known.map(({ key }) => key));
    const others = (byUuid.get(uuid ?? '') ?? []).filter(
      (condition) => !keys.has(keyOf(condition)),
    );
    byGpu.set(index, [
      ...(failure === null ? [] : [failure]),
      ...others.map((condition) => spanOf(condition, condition.to_ms ?? end_ms, [])),
      ...known,
    ]);
  }
  return byGpu;
}

/** Returns the span of a GPU that cannot be read, or `null` if there is no problem. */
function healthSpan(health: Health, now_ms: number): ConditionSpan | null {
  const words = describeHealth(health, now_ms);
  return health.state === 'ok' || words === null || words.level === 'none'
    ? null
    : {
        key: `health ${health.since_ms}`,
        from_ms: health.since_ms,
        to_ms: now_ms,
        level: words.level,
        text: words.text,
      };
}

const endedSpans = memoizeLast((events: readonly Event[]) => {
  const ended = events.flatMap((event) =>
    event.what === 'condition_ended' && event.gpu !== null
      ? [{ ...spanOf(event, event.at_ms, []), gpu: event.gpu.index }]
      : [],
  );
  return groupBy(ended, ({ gpu }) => gpu);
});

function spanOf(
  condition: Condition,
  to_ms: number,
  processes: readonly ProcessRef[],
): ConditionSpan {
  const level = severityLevel(condition.severity);
  const text = describeCondition(condition, processes);
  const from_ms = condition.since_ms;
  return { key: keyOf(condition), from_ms, to_ms: Math.max(from_ms, to_ms), level, text };
}

function keyOf({ condition, since_ms }: Condition): string {
  return `${condition} ${since_ms}`;
}
