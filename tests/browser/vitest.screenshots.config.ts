import { defineConfig } from 'vitest/config';

import { patiently } from './src/patience.ts';

// Pictures are taken with the means of the tests: a real server, and a wait until what should be
// seen is there.
export default defineConfig({
  test: {
    include: ['screenshots/**/*.shot.ts'],
    globalSetup: ['src/prerequisites.ts'],
    fileParallelism: false,
    ...patiently,
    reporters: ['verbose'],
  },
});
