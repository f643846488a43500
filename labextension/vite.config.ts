import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vite';

// Makes plain modules of the TypeScript and the style sheets of this package and of the view. build.mjs has an extension
// made of them.
export default defineConfig({
  build: {
    lib: { entry: fileURLToPath(new URL('src/index.ts', import.meta.url)), formats: ['es'], fileName: 'index' },
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
