import { defineConfig } from 'vitest/config';

import { sharedTestSettings } from './src/patience.ts';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts'],
    globalSetup: ['src/prerequisites.ts'],
    // One browser and one Jupyter server at a time are enough for a machine with two cores.
    // Therefore the test files run one after another and share the browser and the server.
    fileParallelism: false,
    isolate: false,
    ...sharedTestSettings,
    reporters: ['verbose'],
  },
});
