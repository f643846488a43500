import { expect, it } from 'vitest';

import { NOW } from '../testing/frames';
import type { Event } from '../wire';
import type { Palette } from './palette';
import { runBands } from './run-bands';

const palette = { levels: { notice: 'blue' } } as Palette;

function event(
  what: 'run_began' | 'run_step' | 'run_ended',
  after_ms: number,
  changes = {},
): Event {
  const run = { run: 'r1', kind: 'oom', title: 'fill', status: 'running', ...changes } as const;
  return { what, at_ms: NOW + after_ms, gpu: { index: 1, uuid: null }, ...run };
}

const spans = (events: readonly Event[]): unknown[] =>
  (runBands(events, palette, NOW + 60_000).get(1) ?? []).map(({ from_ms, to_ms, label }) => [
    label,
    from_ms - NOW,
    to_ms - NOW,
  ]);

it('each step has its own band', () => {
  const events = [
    event('run_began', 0),
    event('run_step', 5, { step: 'fill' }),
    event('run_step', 4000, { step: 'fill, memory held' }),
    event('run_ended', 9000),
  ];
  expect(spans(events)).toEqual([
    ['fill', 0, 4000],
    ['fill, memory held', 4000, 9000],
  ]);
});

it('ongoing run ends now, unknown start is open', () => {
  expect(spans([event('run_began', 0)])).toEqual([['fill', 0, 60_000]]);
  expect(spans([event('run_ended', 500)])).toEqual([['fill', -Infinity, 500]]);
});

it('runs and GPUs have separate bands', () => {
  const events = [
    event('run_began', 0),
    event('run_began', 10, { run: 'r2', title: 'copy' }),
    { ...event('run_began', 20, { run: 'r3' }), gpu: { index: 0, uuid: null } },
    { ...event('run_began', 20, { run: 'r4' }), gpu: null },
    event('run_ended', 3000),
  ];
  expect(spans(events)).toEqual([
    ['fill', 0, 3000],
    ['copy', 10, 60_000],
  ]);
});
