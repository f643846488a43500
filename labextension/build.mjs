// Makes the prebuilt extension, a folder that JupyterLab loads as it is.
import { cpSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import { build } from 'vite';

const here = fileURLToPath(new URL('.', import.meta.url));
const manifest = JSON.parse(readFileSync(path.join(here, 'package.json'), 'utf8'));
const { dependencies, jupyterlab, name } = manifest;
const output = path.join(here, jupyterlab.outputDir);
const outDir = path.join(output, 'static');

rmSync(output, { recursive: true, force: true });
const chunks = await bundle({ configFile: path.join(here, 'vite.config.ts') });
const container = await bundle({
  configFile: false,
  define: { PACKAGES: JSON.stringify(packagesOf(chunks)), PLUGIN: JSON.stringify(`./${entryOf(chunks)}`) },
  build: {
    lib: { entry: path.join(here, 'src/container/remote-entry.ts'), formats: ['iife'], name },
    target: 'es2022',
    rolldownOptions: { output: { entryFileNames: '[name].[hash].js' } },
  },
});

// JupyterLab shows these under Help, Licenses.
const licenses = path.join(outDir, 'third-party-licenses.json');
const packages = JSON.parse(readFileSync(licenses, 'utf8')).map((one) => ({
  name: one.name,
  versionInfo: one.version,
  licenseId: one.identifier,
  extractedText: one.text,
}));
write(licenses, { packages });

// The settings, and by `package.json.orig` the version that they belong to.
const schemas = path.join(output, 'schemas', name);
cpSync(path.join(here, jupyterlab.schemaDir), schemas, { recursive: true });
cpSync(path.join(here, 'package.json'), path.join(schemas, 'package.json.orig'));

// What JupyterLab loads, and how it tells people to uninstall it.
const _build = { load: `static/${entryOf(container)}`, extension: './extension' };
write(path.join(output, 'package.json'), { ...manifest, jupyterlab: { ...jupyterlab, _build } });
write(path.join(output, 'install.json'), {
  packageManager: 'python',
  packageName: name,
  uninstallInstructions: `Use your Python package manager (pip, conda, etc.) to uninstall the package ${name}`,
});

/** Runs Vite and gives the chunks that it wrote. */
async function bundle({ build: options, ...config }) {
  const [{ output }] = await build({ ...config, root: here, build: { outDir, emptyOutDir: false, ...options } });
  return output.filter(({ type }) => type === 'chunk');
}

function entryOf(chunks) {
  return chunks.find(({ isEntry }) => isEntry).fileName;
}

/** What chunks import of JupyterLab, with the versions that package.json asks for. */
function packagesOf(chunks) {
  const files = new Set(chunks.map(({ fileName }) => fileName));
  const names = new Set(chunks.flatMap(({ imports }) => imports).filter((one) => !files.has(one)));
  return Object.fromEntries(
    [...names].sort().map((one) => {
      if (dependencies[one] === undefined) {
        throw new Error(`${one} is imported, but not among the dependencies of package.json`);
      }
      return [one, dependencies[one]];
    }),
  );
}

function write(file, content) {
  mkdirSync(path.dirname(file), { recursive: true });
  writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`);
}
