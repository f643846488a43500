/**
 * How long a test waits for what a busy machine does late. What never comes costs this long, and
 * only where it fails.
 */

/** For one thing: an element, a value, the end of a process. */
export const TIMEOUT_MS = 60_000;

/** What every configuration of Vitest here has in common. */
export const patiently = {
  // Several things that come late, one after the other, and the error says which of them never
  // came.
  testTimeout: 4 * TIMEOUT_MS,
  hookTimeout: 4 * TIMEOUT_MS,
  // Servers that tests share end after the last of them.
  teardownTimeout: 2 * TIMEOUT_MS,
  expect: { poll: { timeout: TIMEOUT_MS, interval: 100 } },
};
