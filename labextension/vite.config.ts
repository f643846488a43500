import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vitest/config';

import schema from './schema/plugin.json' with { type: 'json' };

const settings = Object.entries(schema.properties).map(([name, setting]) => [
  name,
  setting.default,
]);

// Vite bundles the TypeScript and the style sheets of this package and of the views into plain
// modules. Then build.mjs builds the JupyterLab extension from them.
export default defineConfig({
  // The extension needs only the defaults of the schema, which is too large to bundle.
  define: { SETTINGS_DEFAULTS: JSON.stringify(Object.fromEntries(settings)) },
  // The time limits are long, so that only a test that hangs exceeds them. A slow test on a busy
  // machine does not.
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
    // build.mjs passes the licenses on to JupyterLab.
    license: { fileName: 'licenses.json' },
    rolldownOptions: {
      // JupyterLab provides these packages.
      external: /^@(jupyterlab|lumino)\//,
      output: { chunkFileNames: '[name].js' },
    },
  },
});
