import { expect, it } from 'vitest';

import { ServerClock } from './store';

it('clock ignores frames delayed longer than earlier ones', () => {
  let local_ms = 1_000_000;
  const clock = new ServerClock(() => local_ms);
  clock.observeFrameTime(5_000_000);
  expect(clock.now()).toBe(5_000_000);
  local_ms += 1000;
  // This frame was delayed by 400 ms more than the first frame, so the clock must ignore it.
  clock.observeFrameTime(5_000_600);
  expect(clock.now()).toBe(5_001_000);
  local_ms += 1000;
  clock.observeFrameTime(5_002_100);
  expect(clock.now()).toBe(5_002_100);
});

it('clock is set back with the server clock', () => {
  let local_ms = 1_000_000;
  const clock = new ServerClock(() => local_ms);
  clock.observeFrameTime(1_000_000);
  local_ms += 60_000;
  clock.observeFrameTime(1_010_000);
  expect(clock.now()).toBe(1_010_000);
});
