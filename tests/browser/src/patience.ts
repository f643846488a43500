/**
 * The time limits of tests, which allow for a busy machine. They only take effect in tests that
 * fail.
 */

/** The maximum time to wait for one event: an element, a value, or the end of a process. */
export const TIMEOUT_MS = 60_000;

/** The settings that all Vitest configurations share. */
export const sharedTestSettings = {
  // A test may wait for several events in sequence. The limit of each is reached first, so that the
  // error names the missing event.
  testTimeout: 4 * TIMEOUT_MS,
  hookTimeout: 4 * TIMEOUT_MS,
  // Shared servers are stopped after the last test.
  teardownTimeout: 2 * TIMEOUT_MS,
  expect: { poll: { timeout: TIMEOUT_MS, interval: 100 } },
};
