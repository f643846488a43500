/** When conditions held on each GPU, as far as events and the newest sample tell. */

import { grouped } from '../../lib/grouped';
import { remembered } from '../../lib/remembered';
import type {
  Condition,
  ConditionSpan as PastCondition,
  Event,
  ProcessRef,
  Sample,
} from '../../wire';
import { severityLevel } from '../condition';
import type { Level } from '../describe';
import { describeCondition } from '../describe-condition';
import { valueOf } from '../reading';

export interface ConditionSpan {
  /** The same condition of a GPU has the same, whoever tells of it. */
  key: string;
  from_ms: number;
  to_ms: number;
  level: Level;
  text: string;
}

/** By GPU. A condition that has not ended holds until `now_ms`. `past` are those that the server remembers. */
export function conditionSpans(
  events: readonly Event[],
  sample: Sample | null,
  now_ms: number,
  past: readonly PastCondition[] = [],
): Map<number, readonly ConditionSpan[]> {
  const byGpu = new Map<number, readonly ConditionSpan[]>(endedSpans(events));
  const told = grouped(past, ({ uuid }) => uuid);
  for (const { index, uuid, conditions, processes } of sample?.gpus ?? []) {
    const lasting = conditions.map((condition) =>
      spanOf(condition, now_ms, valueOf(processes) ?? []),
    );
    const known = [...(byGpu.get(index) ?? []), ...lasting];
    const keys = new Set(known.map(({ key }) => key));
    const others = (told.get(uuid ?? '') ?? []).filter((condition) => !keys.has(keyOf(condition)));
    byGpu.set(index, [
      ...others.map((condition) => spanOf(condition, condition.to_ms ?? now_ms, [])),
      ...known,
    ]);
  }
  return byGpu;
}

const endedSpans = remembered((events: readonly Event[]) => {
  const ended = events.flatMap((event) =>
    event.what === 'condition_ended' && event.gpu !== null
      ? [{ ...spanOf(event, event.at_ms, []), gpu: event.gpu.index }]
      : [],
  );
  return grouped(ended, ({ gpu }) => gpu);
});

function spanOf(
  condition: Condition,
  to_ms: number,
  processes: readonly ProcessRef[],
): ConditionSpan {
  const level = severityLevel(condition.severity);
  const text = describeCondition(condition, processes);
  return { key: keyOf(condition), from_ms: condition.since_ms, to_ms, level, text };
}

function keyOf({ condition, since_ms }: Condition): string {
  return `${condition} ${since_ms}`;
}
