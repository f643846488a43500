import { defineConfig } from 'vitest/config';

import { patiently } from './src/patience.ts';

// The page alone, in a second browser.
export default defineConfig({
  test: {
    include: ['firefox/**/*.test.ts'],
    globalSetup: ['src/prerequisites.ts'],
    fileParallelism: false,
    ...patiently,
    reporters: ['verbose'],
  },
});
