// Makes the prebuilt extension, which JupyterLab loads as it is, and the file that tells JupyterLab how to uninstall it.
import { execFileSync } from 'node:child_process';
import { createRequire } from 'node:module';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

const here = fileURLToPath(new URL('.', import.meta.url));
const require = createRequire(import.meta.url);
const { jupyterlab, name } = JSON.parse(readFileSync(path.join(here, 'package.json'), 'utf8'));
const builder = path.dirname(require.resolve('@jupyter/builder/package.json'));

execFileSync(
  process.execPath,
  [
    path.join(builder, 'lib', 'build-labextension.js'),
    '--core-package-file',
    require.resolve('@jupyterlab/core-meta/core.package.json'),
    here,
  ],
  { stdio: 'inherit', cwd: here },
);

// The builder sees one package in what Vite has put together; JupyterLab shows these under Help, Licenses.
const packages = JSON.parse(readFileSync(path.join(here, 'lib', 'licenses.json'), 'utf8')).map((one) => ({
  name: one.name,
  versionInfo: one.version,
  licenseId: one.identifier,
  extractedText: one.text,
}));
const output = path.join(here, jupyterlab.outputDir);
writeFileSync(path.join(output, 'static', 'third-party-licenses.json'), `${JSON.stringify({ packages }, null, 2)}\n`);

const install = {
  packageManager: 'python',
  packageName: name,
  uninstallInstructions: `Use your Python package manager (pip, conda, etc.) to uninstall the package ${name}`,
};
writeFileSync(path.join(output, 'install.json'), `${JSON.stringify(install, null, 2)}\n`);
