import { defineConfig } from 'vitest/config';

import { sharedTestSettings } from './src/patience.ts';

// The hub tests run in a separate environment that contains JupyterHub.
export default defineConfig({
  test: {
    include: ['hub/**/*.test.ts'],
    globalSetup: ['src/prerequisites.ts'],
    ...sharedTestSettings,
    reporters: ['verbose'],
  },
});
