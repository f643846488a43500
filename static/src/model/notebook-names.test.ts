import { readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

import { isConsolePath, notebookNames } from './notebooks';

interface Case {
  name: string;
  paths: string[];
  names: string[];
  consoles?: boolean[];
}

it('notebooks have shortest distinct names', () => {
  const file = new URL('../../../tests/notebook-names.json', import.meta.url);
  for (const { name, paths, names, consoles } of JSON.parse(readFileSync(file, 'utf8')) as Case[]) {
    const found = notebookNames(paths);
    expect(
      paths.map((path) => found.get(path)),
      name,
    ).toEqual(names);
    expect(paths.map(isConsolePath), name).toEqual(consoles ?? paths.map(() => false));
  }
});
