import { defineConfig } from 'vitest/config';

import { patiently } from './src/patience';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts'],
    globalSetup: ['src/prerequisites.ts'],
    // A browser and a Jupyter server at a time are enough for two cores.
    fileParallelism: false,
    ...patiently,
    reporters: ['verbose'],
  },
});
