import { defineConfig } from 'vitest/config';

import { patiently } from '../../browser/src/patience.ts';

// A library that is built for speed, so that its own cost is not measured along.
process.env.GPUMON_TEST_FAKE_NVML = new URL(
  '../../../target/release/libfake_nvml.so',
  import.meta.url,
).pathname;

export default defineConfig({
  test: {
    root: import.meta.dirname,
    include: ['front-end.bench.ts'],
    globalSetup: ['../../browser/src/prerequisites.ts'],
    ...patiently,
    testTimeout: 400_000,
    // What is printed are the rows; of a measurement that fails, the error.
    disableConsoleIntercept: true,
    reporters: ['./reporter.ts'],
  },
});
