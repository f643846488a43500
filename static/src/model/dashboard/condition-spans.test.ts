import { expect, it } from 'vitest';

import { gpu, NOW, sample, throttled } from '../../testing/frames';
import type { Event } from '../../wire';
import { conditionSpans } from './condition-spans';

it('condition lasts until its end or now', () => {
  const ended: Event = {
    at_ms: NOW - 9000,
    gpu: { index: 1, uuid: 'GPU-1' },
    what: 'condition_ended',
    ...throttled('critical', NOW - 20_000),
  };
  const now = sample(NOW, [gpu(0, { conditions: [throttled('notice', NOW - 5000)] }), gpu(1)]);
  const events = [ended];
  const spans = conditionSpans(events, now, NOW + 100);
  expect(spans.get(0)).toMatchObject([{ from_ms: NOW - 5000, to_ms: NOW + 100, level: 'notice' }]);
  expect(spans.get(1)).toMatchObject([
    { from_ms: NOW - 20_000, to_ms: NOW - 9000, level: 'critical' },
  ]);
  expect(spans.get(0)?.[0]?.text).toMatch(/power-capped/i);
  // The description of an ended condition is cached.
  expect(conditionSpans(events, now, NOW + 200).get(1)?.[0]).toBe(spans.get(1)?.[0]);
});

it('conditions of a lost GPU end with it', () => {
  const lost = gpu(0, {
    health: { state: 'lost', since_ms: NOW - 3000 },
    conditions: [throttled('notice', NOW - 5000), throttled('warning', NOW - 1000)],
  });
  const asleep = gpu(1, { health: { state: 'asleep', since_ms: NOW - 3000 } });
  const spans = conditionSpans([], sample(NOW, [lost, asleep]), NOW);
  expect(spans.get(0)).toMatchObject([
    { from_ms: NOW - 3000, to_ms: NOW, level: 'critical' },
    { from_ms: NOW - 5000, to_ms: NOW - 3000 },
    { from_ms: NOW - 1000, to_ms: NOW - 1000 },
  ]);
  expect(spans.get(0)?.[0]?.text).toMatch(/^lost/);
  expect(spans.get(1)).toEqual([]);
});
