import { expect, it } from 'vitest';

import { NOW } from '../testing/frames';
import type { Event } from '../wire';
import type { Palette } from './palette';
import { runBands } from './chart-marks';

const palette = { levels: { notice: 'blue' } } as Palette;

function makeEvent(
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
    makeEvent('run_began', 0),
    makeEvent('run_step', 5, { step: 'fill' }),
    makeEvent('run_step', 4000, { step: 'fill, memory held' }),
    makeEvent('run_ended', 9000),
  ];
  expect(spans(events)).toEqual([
    ['fill', 0, 4000],
    ['fill, memory held', 4000, 9000],
  ]);
});

it('band of unfinished run ends at current time', () => {
  expect(spans([makeEvent('run_began', 0)])).toEqual([['fill', 0, 60_000]]);
  expect(spans([makeEvent('run_ended', 500)])).toEqual([['fill', -Infinity, 500]]);
});

it('runs and GPUs have separate bands', () => {
  const events = [
    makeEvent('run_began', 0),
    makeEvent('run_began', 10, { run: 'r2', title: 'copy' }),
    { ...makeEvent('run_began', 20, { run: 'r3' }), gpu: { index: 0, uuid: null } },
    { ...makeEvent('run_began', 20, { run: 'r4' }), gpu: null },
    makeEvent('run_ended', 3000),
  ];
  expect(spans(events)).toEqual([
    ['fill', 0, 3000],
    ['copy', 10, 60_000],
  ]);
});
