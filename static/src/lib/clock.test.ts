import { expect, it } from 'vitest';

import { ServerClock } from './clock';

it('follows the least delayed frame', () => {
  let local_ms = 1_000_000;
  const clock = new ServerClock(() => local_ms);
  clock.observe(5_000_000);
  expect(clock.now()).toBe(5_000_000);
  local_ms += 1000;
  // This frame took 400 ms longer than the first, so it says less about the clock.
  clock.observe(5_000_600);
  expect(clock.now()).toBe(5_001_000);
  local_ms += 1000;
  clock.observe(5_002_100);
  expect(clock.now()).toBe(5_002_100);
});

it('follows a clock that was set back', () => {
  let local_ms = 1_000_000;
  const clock = new ServerClock(() => local_ms);
  clock.observe(1_000_000);
  local_ms += 60_000;
  clock.observe(1_010_000);
  expect(clock.now()).toBe(1_010_000);
});
