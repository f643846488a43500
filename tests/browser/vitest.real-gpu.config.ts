import { defineConfig } from 'vitest/config';

import { patiently } from './src/patience.ts';

// Tests with a real GPU that are started manually, because no CI machine has a GPU.
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
