import { defineConfig } from 'vitest/config';

import { sharedTestSettings } from './src/patience.ts';

// Tests of the standalone page in Firefox.
export default defineConfig({
  test: {
    include: ['firefox/**/*.test.ts'],
    globalSetup: ['src/prerequisites.ts'],
    fileParallelism: false,
    ...sharedTestSettings,
    reporters: ['verbose'],
  },
});
