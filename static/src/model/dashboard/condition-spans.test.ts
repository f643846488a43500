import { expect, it } from 'vitest';

import { makeGpu, NOW, makeSample, makeThrottledCondition } from '../../testing/frames';
import type { Event } from '../../wire';
import { conditionSpans } from './condition-spans';

it('condition lasts until its end or now', () => {
  const ended: Event = {
    at_ms: NOW - 9000,
    gpu: { index: 1, uuid: 'GPU-1' },
    what: 'condition_ended',
    ...makeThrottledCondition('critical', NOW - 20_000),
  };
  const now = makeSample(NOW, [
    makeGpu(0, { conditions: [makeThrottledCondition('notice', NOW - 5000)] }),
    makeGpu(1),
  ]);
  const events = [ended];
  const spans = conditionSpans(events, now, NOW + 100);
  expect(spans.get(0)).toMatchObject([{ from_ms: NOW - 5000, to_ms: NOW + 100, level: 'notice' }]);
  expect(spans.get(1)).toMatchObject([
    { from_ms: NOW - 20_000, to_ms: NOW - 9000, level: 'critical' },
  ]);
  expect(spans.get(0)?.[0]?.text).toMatch(/power-capped/i);
  // The span of an ended condition is cached, so the same object must be returned.
  expect(conditionSpans(events, now, NOW + 200).get(1)?.[0]).toBe(spans.get(1)?.[0]);
});

it('conditions of a lost GPU end with it', () => {
  const lost = makeGpu(0, {
    health: { state: 'lost', since_ms: NOW - 3000 },
    conditions: [
      makeThrottledCondition('notice', NOW - 5000),
      makeThrottledCondition('warning', NOW - 1000),
    ],
  });
  const asleep = makeGpu(1, { health: { state: 'asleep', since_ms: NOW - 3000 } });
  const spans = conditionSpans([], makeSample(NOW, [lost, asleep]), NOW);
  expect(spans.get(0)).toMatchObject([
    { from_ms: NOW - 3000, to_ms: NOW, level: 'critical' },
    { from_ms: NOW - 5000, to_ms: NOW - 3000 },
    { from_ms: NOW - 1000, to_ms: NOW - 1000 },
  ]);
  expect(spans.get(0)?.[0]?.text).toMatch(/^lost/);
  expect(spans.get(1)).toEqual([]);
});
