// Builds the prebuilt JupyterLab extension from Vite's output with @jupyter/builder, and adds the
// files that the builder omits.
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const { jupyterlab } = read('package.json');
const output = path.join(here, jupyterlab.outputDir);

// `@jupyterlab/core-meta`, a dependency of the builder, lists the packages that JupyterLab shares
// with its extensions.
const builder = createRequire(import.meta.url).resolve('@jupyter/builder/package.json');
const core = createRequire(builder).resolve('@jupyterlab/core-meta/core.package.json');
const build = path.join(path.dirname(builder), 'lib/build-labextension.js');
execFileSync(process.execPath, [build, '--core-package-file', core, here], {
  stdio: 'inherit',
  cwd: here,
});

// JupyterLab shows these licenses under Help, Licenses. The builder cannot list them, because it
// sees Vite's bundle as one package.
const packages = read('dist/licenses.json').map((one) => ({
  name: one.name,
  versionInfo: one.version,
  licenseId: one.identifier,
  extractedText: one.text,
}));
write('static/third-party-licenses.json', { packages });

// JupyterLab shows these instructions to users who want to uninstall the extension. The
// instructions name the Python package, whose name differs from the extension's. This file is
// written last, because the build uses it to decide whether the extension is up to date.
const packageName = /^\[project\]\nname = "(.+)"$/m.exec(
  readFileSync(path.join(here, '../pyproject.toml'), 'utf8'),
)[1];
write('install.json', {
  packageManager: 'python',
  packageName,
  uninstallInstructions: `Use your Python package manager (pip, conda, etc.) to uninstall the package ${packageName}`,
});

function read(file) {
  return JSON.parse(readFileSync(path.join(here, file), 'utf8'));
}

function write(file, content) {
  writeFileSync(path.join(output, file), `${JSON.stringify(content, null, 2)}\n`);
}
