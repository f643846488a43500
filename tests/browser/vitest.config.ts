import { defineConfig } from 'vitest/config';

import { patiently } from './src/patience.ts';

export default defineConfig({
  test: {
    include: ['src/**/*.test.ts'],
    globalSetup: ['src/prerequisites.ts'],
    // A browser and a Jupyter server at a time are enough for two cores, and files share them.
    fileParallelism: false,
    isolate: false,
    ...patiently,
    reporters: ['verbose'],
  },
});
