import { defineConfig } from 'vitest/config';

import { sharedTestSettings } from './src/patience.ts';

// Tests with a real GPU that are started manually, because no CI machine has a GPU.
export default defineConfig({
  test: {
    include: ['real-gpu/**/*.real.ts'],
    globalSetup: ['src/prerequisites.ts'],
    fileParallelism: false,
    ...sharedTestSettings,
    disableConsoleIntercept: true,
    reporters: ['verbose'],
  },
});
