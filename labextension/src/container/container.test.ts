import { expect, it, vi } from 'vitest';

import { makeContainer, type ShareScope } from './container';

const APPUTILS = '@jupyterlab/apputils';
const WIDGETS = '@lumino/widgets';
const PLUGIN = { id: 'gpumon:plugin' };

/** Versions of a package, each a module that says which. */
function versions(...names: string[]): ShareScope[string] {
  return Object.fromEntries(names.map((version) => [version, { get: () => Promise.resolve(() => ({ version })) }]));
}

function made(needed: Record<string, string> = { [APPUTILS]: '^4.0.0' }) {
  const load = vi.fn(() => Promise.resolve({ default: PLUGIN }));
  return { container: makeContainer(needed, load), load };
}

it('gives the plugin in an object that JupyterLab can write into, when all packages are there', async () => {
  const { container, load } = made({ [APPUTILS]: '^4.0.0', [WIDGETS]: '^2.0.0' });
  container.init({ [APPUTILS]: versions('4.7.6'), [WIDGETS]: versions('2.8.0'), other: versions('1.0.0') });
  load.mockImplementation(() => {
    expect(container.packages).toEqual({ [APPUTILS]: { version: '4.7.6' }, [WIDGETS]: { version: '2.8.0' } });
    return Promise.resolve({ default: PLUGIN });
  });
  const module = (await container.get('./extension'))();
  expect(Object.assign(module, { __scope__: 'gpumon' })).toEqual({
    __esModule: true,
    __scope__: 'gpumon',
    default: PLUGIN,
  });
});

it.each([
  ['the newest version', ['4.9.0', '4.10.1', '4.2.0'], '4.10.1'],
  ['a release rather than what came before it', ['4.0.0-rc.1', '4.0.0', '4.0.0-beta.2'], '4.0.0'],
  ['the newest of what came before a release', ['4.0.0-rc.2', '4.0.0-rc.10', '4.0.0-beta.11'], '4.0.0-rc.10'],
])('takes %s', async (_, present, version) => {
  const { container } = made();
  container.init({ [APPUTILS]: versions(...present) });
  await container.get('./extension');
  expect(container.packages[APPUTILS]).toEqual({ version });
});

it('takes what is in use already, although there is a newer one', async () => {
  const { container } = made();
  const present = versions('4.0.0', '4.1.0', '4.2.0');
  Object.assign(present['4.1.0'] ?? {}, { loaded: 1 });
  container.init({ [APPUTILS]: present });
  await container.get('./extension');
  expect(container.packages[APPUTILS]).toEqual({ version: '4.1.0' });
});

it('can be initialised and asked again', async () => {
  const { container } = made();
  const scope = { [APPUTILS]: versions('4.7.6') };
  container.init(scope);
  const first = (await container.get('./extension'))();
  const taken = { ...container.packages };
  container.init(scope);
  expect((await container.get('./extension'))()).toEqual(first);
  expect(container.packages).toEqual(taken);
});

it.each([
  ['is missing', {}, 'none'],
  ['is of another generation', { [APPUTILS]: versions('5.0.1') }, '5.0.1'],
])('says which package %s, and loads nothing', async (_, scope: ShareScope, present) => {
  const { container, load } = made();
  container.init(scope);
  const told = `gpumon needs ${APPUTILS} ^4.0.0, but this JupyterLab has ${present}`;
  await expect(container.get('./extension')).rejects.toThrow(told);
  expect(load).not.toHaveBeenCalled();
});

it('says that it has no other module', async () => {
  const { container } = made();
  await expect(container.get('./mimeExtension')).rejects.toThrow('gpumon has no module ./mimeExtension');
});
