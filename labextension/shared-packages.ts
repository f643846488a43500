import type { Plugin } from 'vite';

/** Whether JupyterLab brings a package, and shares it with its extensions. */
export function isShared(name: string): boolean {
  return /^@(jupyterlab|lumino)\//.test(name);
}

/**
 * Has chunks take what JupyterLab shares out of the container (`src/container/container.ts`):
 *
 *     import { URLExt as U } from '@jupyterlab/coreutils';
 *     const { URLExt: U } = _JUPYTERLAB.gpumon.packages['@jupyterlab/coreutils'];
 */
export function sharedPackages(): Plugin {
  return {
    name: 'gpumon-shared-packages',
    config: () => ({ build: { rolldownOptions: { external: isShared } } }),
    renderChunk(code) {
      let rewritten = code;
      // From behind, so that the places of those before stay right.
      for (const node of this.parse(code).body.toReversed()) {
        if (node.type === 'ImportDeclaration' && isShared(node.source.value)) {
          const names = node.specifiers.map((specifier) => {
            if (specifier.type !== 'ImportSpecifier' || specifier.imported.type !== 'Identifier') {
              throw new Error(`${node.source.value} has to be imported by names`);
            }
            return `${specifier.imported.name}: ${specifier.local.name}`;
          });
          const taken = `const { ${names.join(', ')} } = _JUPYTERLAB.gpumon.packages['${node.source.value}'];`;
          rewritten = rewritten.slice(0, node.start) + taken + rewritten.slice(node.end);
        }
      }
      return rewritten;
    },
  };
}
