import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitest/config';

import schema from './schema/plugin.json' with { type: 'json' };

const settings = Object.entries(schema.properties).map(([name, setting]) => [
  name,
  setting.default,
]);

// Makes plain modules of the TypeScript and the style sheets of this package and of the view.
// build.mjs has an extension made of them.
export default defineConfig({
  // The schema alone says what holds where nothing was set; all of it would be too much to load.
  define: { SETTINGS_DEFAULTS: JSON.stringify(Object.fromEntries(settings)) },
  // The limit guards against a test that hangs, and not against a busy machine.
  test: {
    include: ['src/**/*.test.ts'],
    isolate: false,
    restoreMocks: true,
    setupFiles: ['../static/src/testing/each-file.ts'],
    testTimeout: 120_000,
    hookTimeout: 120_000,
  },
  build: {
    lib: {
      entry: fileURLToPath(new URL('src/index.ts', import.meta.url)),
      formats: ['es'],
      fileName: 'index',
    },
    target: 'es2022',
    minify: false,
    cssMinify: true,
    // build.mjs hands it on.
    license: { fileName: 'licenses.json' },
    rolldownOptions: {
      // JupyterLab brings these.
      external: /^@(jupyterlab|lumino)\//,
      output: { chunkFileNames: '[name].js' },
    },
  },
});
