import { defineConfig } from 'vitest/config';

// Against a real GPU, by hand: no machine that tests every change has one.
export default defineConfig({
  test: {
    include: ['real-gpu/**/*.real.ts'],
    globalSetup: ['src/prerequisites.ts'],
    fileParallelism: false,
    testTimeout: 240_000,
    hookTimeout: 120_000,
    disableConsoleIntercept: true,
    reporters: ['verbose'],
  },
});
