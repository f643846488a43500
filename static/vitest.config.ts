import { defineConfig } from 'vitest/config';

export default defineConfig({
  test: {
    // Tests that need a document say so in their first line.
    environment: 'node',
    include: ['src/**/*.test.ts'],
    restoreMocks: true,
  },
});
