import { fileURLToPath } from 'node:url';

import { defineConfig } from 'vite';

import { sharedPackages } from './shared-packages.ts';

// Makes the chunks of the extension; build.mjs puts the container in front of them.
export default defineConfig({
  plugins: [sharedPackages()],
  build: {
    lib: { entry: fileURLToPath(new URL('src/index.ts', import.meta.url)), formats: ['es'] },
    target: 'es2022',
    // build.mjs hands it on.
    license: { fileName: 'third-party-licenses.json' },
    rolldownOptions: {
      // What other chunks need of the plugin's may stay there.
      preserveEntrySignatures: 'allow-extension',
      // By the hash, a page gets the chunks of its own version or none.
      output: { entryFileNames: '[name].[hash].js', chunkFileNames: '[name].[hash].js', minify: true },
    },
  },
});
