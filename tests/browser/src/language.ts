/**
 * JupyterLab in the language of `pseudo-locale.ts`, made as translators make theirs: out of the
 * texts in the sources.
 */

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import type { Page } from 'playwright-core';
import { parseSync, Visitor, type ESTree } from 'vite';

import { pseudoLocalized } from '../../../static/src/testing/pseudo-locale';
import { ROOT } from './machine';

/** A text, or one for one thing and one for several. */
type Forms = readonly string[];

/**
 * The texts that the sources have translated, each as it stands in a call of `trans.__` or
 * `trans._n`.
 */
function textsInSources(): Forms[] {
  return ['static/src', 'labextension/src'].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => /(?<!\.test)\.tsx?$/.test(file))
      .flatMap((file) => textsIn(path.join(ROOT, folder, file))),
  );
}

/** Has this page's JupyterLab speak that language, as far as it is about gpumon. */
export async function usePseudoLocale(page: Page): Promise<void> {
  const about = {
    domain: 'gpumon',
    language: 'eo',
    plural_forms: 'nplurals=2; plural=(n != 1);',
    version: '1',
  };
  const texts = textsInSources().map(
    (forms) => [forms[0] ?? '', forms.map(pseudoLocalized)] as const,
  );
  const data = { gpumon: { '': about, ...Object.fromEntries(texts) } };
  await page.route(/\/lab\/api\/translations\//, async (route) => {
    await route.fulfill({ json: { data, message: '' } });
  });
}

function textsIn(file: string): Forms[] {
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
