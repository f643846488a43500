import { defineConfig } from 'vitest/config';

import { sharedTestSettings } from './src/patience.ts';

// Screenshots use the tests' fixtures, which start a real server and wait until the content is
// displayed.
export default defineConfig({
  test: {
    include: ['screenshots/**/*.shot.ts'],
    globalSetup: ['src/prerequisites.ts'],
    fileParallelism: false,
    ...sharedTestSettings,
    reporters: ['verbose'],
  },
});
