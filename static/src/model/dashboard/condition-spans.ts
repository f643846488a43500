/** When conditions held on each GPU, as far as events and the newest sample tell. */

import type { Event, Sample } from '../../wire';
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
): Map<number, ConditionSpan[]> {
  const byGpu = new Map<number, ConditionSpan[]>();
  const add = (gpu: number, span: ConditionSpan): void => {
    byGpu.set(gpu, [...(byGpu.get(gpu) ?? []), span]);
  };
  for (const event of events) {
    if (event.what === 'condition_ended' && event.gpu !== null) {
      const level = severityLevel(event.severity);
      const text = describeCondition(event, []);
      add(event.gpu.index, { from_ms: event.since_ms, to_ms: event.at_ms, level, text });
    }
  }
  for (const { index, conditions, processes } of sample?.gpus ?? []) {
    for (const condition of conditions) {
      const level = severityLevel(condition.severity);
      const text = describeCondition(condition, valueOf(processes) ?? []);
      add(index, { from_ms: condition.since_ms, to_ms: now_ms, level, text });
    }
  }
  return byGpu;
}
