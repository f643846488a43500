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
    // The limits are so long that they only end tests that hang, not slow tests on a busy machine.
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
  // Relative URLs make the page work under any prefix of a proxy.
  base: './',
  build: {
    outDir: fileURLToPath(new URL('dist', import.meta.url)),
    emptyOutDir: true,
    target: 'es2022',
    assetsInlineLimit: 0,
    // The licenses of the bundled packages are written to a file, because they require that their
    // texts are included.
    license: { fileName: 'licenses.md' },
    modulePreload: { polyfill: false },
  },
});
