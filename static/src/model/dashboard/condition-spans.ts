/** When conditions held on each GPU, as far as events and the newest sample tell. */

import { grouped } from '../../lib/grouped';
import { remembered } from '../../lib/remembered';
import type { Condition, Event, ProcessRef, Sample } from '../../wire';
import { severityLevel } from '../condition';
import type { Level } from '../describe';
import { describeCondition } from '../describe-condition';
import { valueOf } from '../reading';

export interface ConditionSpan {
  from_ms: number;
  to_ms: number;
  level: Level;
  text: string;
}

/** By GPU. A condition that has not ended holds until `now_ms`. */
export function conditionSpans(
  events: readonly Event[],
  sample: Sample | null,
  now_ms: number,
): Map<number, readonly ConditionSpan[]> {
  const byGpu = new Map<number, readonly ConditionSpan[]>(endedSpans(events));
  for (const { index, conditions, processes } of sample?.gpus ?? []) {
    const lasting = conditions.map((condition) => spanOf(condition, now_ms, valueOf(processes) ?? []));
    byGpu.set(index, [...(byGpu.get(index) ?? []), ...lasting]);
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

function spanOf(condition: Condition, to_ms: number, processes: readonly ProcessRef[]): ConditionSpan {
  const level = severityLevel(condition.severity);
  return { from_ms: condition.since_ms, to_ms, level, text: describeCondition(condition, processes) };
}
