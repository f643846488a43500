import { defineConfig } from 'vitest/config';

import { patiently } from './src/patience.ts';

// In an environment of its own, which has JupyterHub.
export default defineConfig({
  test: {
    include: ['hub/**/*.test.ts'],
    globalSetup: ['src/prerequisites.ts'],
    ...patiently,
    reporters: ['verbose'],
  },
});
