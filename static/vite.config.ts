import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitest/config';

export default defineConfig({
  root: fileURLToPath(new URL('src/page', import.meta.url)),
  test: {
    root: fileURLToPath(new URL('.', import.meta.url)),
    include: ['src/**/*.test.{ts,tsx}'],
    isolate: false,
    restoreMocks: true,
    setupFiles: ['src/testing/each-file.ts'],
    // This guards against a test that hangs, and not against a busy machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
  // Relative addresses, so that the page works under any prefix of a proxy.
  base: './',
  build: {
    outDir: fileURLToPath(new URL('dist', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    // What the packages inside ask to be told of them.
    license: { fileName: 'licenses.md' },
    modulePreload: { polyfill: false },
  },
});
