import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';

import { expect, it } from 'vitest';

const at = (path: string): string => fileURLToPath(new URL(path, import.meta.url));
const SHEETS = readdirSync(at('style')).map((name) => readFileSync(at(`style/${name}`), 'utf8'));

/** The classes whose place among others a sheet decides, whatever they stand in. */
function laidOut(sheet: string): string[] {
  const rules = sheet.matchAll(/^(?:\.gpumon )?\.(gpumon-[a-z-]+) \{([^}]*)\}/gm);
  return [...rules].flatMap(([, name = '', body = '']) => (/^\s*display:/m.test(body) ? [name] : []));
}

it('no two style sheets lay out the same class', () => {
  const all = SHEETS.flatMap((sheet) => [...new Set(laidOut(sheet))]);
  expect(all.filter((name, i) => all.indexOf(name) !== i)).toEqual([]);
});

it('every class of the style sheets is used', () => {
  const sources = ['..', '../../../labextension/src'].flatMap((folder) =>
    readdirSync(at(folder), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts') && !name.endsWith('.test.ts'))
      .map((name) => readFileSync(join(at(folder), name), 'utf8')),
  );
  const code = sources.join('\n');
  const classes = new Set(SHEETS.flatMap((sheet) => sheet.match(/(?<=\.)gpumon-[a-z-]+/g) ?? []));
  expect([...classes].filter((name) => !new RegExp(`\\b${name}(?![a-z-])`).test(code))).toEqual([]);
});
