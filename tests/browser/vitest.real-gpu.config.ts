import { defineConfig } from 'vitest/config';

import { patiently } from './src/patience.ts';

// Against a real GPU, by hand: no machine that tests every change has one.
export default defineConfig({
  test: {
    include: ['real-gpu/**/*.real.ts'],
    globalSetup: ['src/prerequisites.ts'],
    fileParallelism: false,
    ...patiently,
    disableConsoleIntercept: true,
    reporters: ['verbose'],
  },
});
