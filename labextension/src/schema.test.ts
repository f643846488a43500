import { readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

import schema from '../schema/plugin.json';

it('View menu has all commands that open views', () => {
  const [view] = schema['jupyter.lab.menus'].main;
  const commands = view?.items.flatMap(({ command }) => command ?? []);
  const source = readFileSync(new URL('commands.ts', import.meta.url), 'utf8');
  const registered = [...source.matchAll(/'(gpumon:open[a-z-]*)'/g)].map(([, command]) => command);
  expect([view?.id, commands]).toEqual(['jp-mainmenu-view', registered]);
});
