/**
 * The time limits of tests, which allow for a busy machine. They only take effect in tests that
 * fail.
 */

/** The maximum time to wait for one event: an element, a value, or the end of a process. */
export const TIMEOUT_MS = 60_000;

/** The settings that all Vitest configurations share. */
export const sharedTestSettings = {
  // A test may wait for several events in sequence. The time limit of one event is reached before
  // that of the test, so that the error names the missing event.
  testTimeout: 4 * TIMEOUT_MS,
  hookTimeout: 4 * TIMEOUT_MS,
  // The teardown includes stopping the servers that all tests share.
  teardownTimeout: 2 * TIMEOUT_MS,
  expect: { poll: { timeout: TIMEOUT_MS, interval: 100 } },
};
