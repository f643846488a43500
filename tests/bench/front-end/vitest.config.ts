import { defineConfig } from 'vitest/config';

import { sharedTestSettings } from '../../browser/src/patience.ts';

// The measurements use an optimized build of the library, so that the cost of the library itself
// hardly affects the results.
process.env.GPUMON_TEST_FAKE_NVML = new URL(
  '../../../target/release/libfake_nvml.so',
  import.meta.url,
).pathname;

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['front-end.bench.ts'],
    globalSetup: ['../../browser/src/prerequisites.ts'],
    ...sharedTestSettings,
    testTimeout: 400_000,
    // Only the rows of figures, and the errors of failed measurements, are printed.
    disableConsoleIntercept: true,
    reporters: ['./reporter.ts'],
  },
});
