import { defineConfig } from 'vitest/config';

import { sharedTestSettings } from './src/patience.ts';

// Screenshots are taken with the tests' fixtures: a real server, and a wait until the content is
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
