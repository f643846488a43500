/**
 * Sets JupyterLab to the pseudo-language of `pseudo-locale.ts`. The catalog is made from the texts
 * in the sources, like the catalogs of translators.
 */

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import type { Page } from 'playwright-core';
import { parseSync, Visitor, type ESTree } from 'vite';

import { pseudoLocalize } from '../../../static/src/testing/pseudo-locale';
import { ROOT } from './machine';

/** The forms of a text: only the text itself, or its singular and plural. */
type Forms = readonly string[];

/**
 * Returns the translatable texts in the sources, which are the literals in calls of `trans.__` and
 * `trans._n`.
 */
function collectTranslatableTexts(): Forms[] {
  return ['static/src', 'labextension/src'].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /(?<!\.test)\.tsx?$/.test(file))
      .flatMap((file) => readTexts(path.join(ROOT, folder, file))),
  );
}

/** Makes the page's JupyterLab use the pseudo-language for gpumon's texts. */
export async function usePseudoLocale(page: Page): Promise<void> {
  const about = {
    domain: 'gpumon',
    language: 'eo',
    plural_forms: 'nplurals=2; plural=(n != 1);',
    version: '1',
  };
  const texts = collectTranslatableTexts().map(
    (forms) => [forms[0] ?? '', forms.map(pseudoLocalize)] as const,
  );
  const data = { gpumon: { '': about, ...Object.fromEntries(texts) } };
  await page.route(/\/lab\/api\/translations\//, async (route) => {
    await route.fulfill({ json: { data, message: '' } });
  });
}

function readTexts(file: string): Forms[] {
  const source = readFileSync(file, 'utf8');
  const texts: Forms[] = [];
  new Visitor({
    CallExpression({ callee, arguments: passed }) {
      if (callee.type !== 'MemberExpression' || callee.property.type !== 'Identifier') {
        return;
      }
      const count = { __: 1, _n: 2 }[callee.property.name];
      const receiver = source.slice(callee.object.start, callee.object.end);
      if (count !== undefined && /(^|\.)trans$/.test(receiver)) {
        texts.push(passed.slice(0, count).flatMap((text) => (isString(text) ? [text.value] : [])));
      }
    },
  }).visit(parseSync(file, source).program);
  return texts;
}

function isString(node: ESTree.Argument): node is ESTree.StringLiteral {
  return node.type === 'Literal' && typeof node.value === 'string';
}
