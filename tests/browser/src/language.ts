/** JupyterLab in the language of `pseudo-locale.ts`, made as translators make theirs: out of the texts in the sources. */

import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';

import type { Page } from 'playwright-core';
import ts from 'typescript';

import { pseudoLocalized } from '../../../static/src/testing/pseudo-locale';
import { ROOT } from './machine';

/** A text, or one for one thing and one for several. */
type Forms = readonly string[];

/** The texts that the sources have translated, each as it stands in a call of `trans.__` or `trans._n`. */
function textsInSources(): Forms[] {
  return ['static/src', 'labextension/src'].flatMap((folder) =>
    readdirSync(path.join(ROOT, folder), { recursive: true, encoding: 'utf8' })
      .filter((file) => file.endsWith('.ts') && !file.endsWith('.test.ts'))
      .flatMap((file) => textsIn(path.join(ROOT, folder, file))),
  );
}

/** Has this page's JupyterLab speak that language, as far as it is about gpumon. */
export async function usePseudoLocale(page: Page): Promise<void> {
  const about = { domain: 'gpumon', language: 'eo', plural_forms: 'nplurals=2; plural=(n != 1);', version: '1' };
  const texts = textsInSources().map((forms) => [forms[0] ?? '', forms.map(pseudoLocalized)] as const);
  const data = { gpumon: { '': about, ...Object.fromEntries(texts) } };
  await page.route(/\/lab\/api\/translations\//, async (route) => {
    await route.fulfill({ json: { data, message: '' } });
  });
}

function textsIn(file: string): Forms[] {
  const texts: Forms[] = [];
  const visit = (node: ts.Node): void => {
    if (ts.isCallExpression(node) && ts.isPropertyAccessExpression(node.expression)) {
      const receiver = node.expression.expression.getText();
      const count = { __: 1, _n: 2 }[node.expression.name.text];
      if (count !== undefined && /(^|\.)trans$/.test(receiver)) {
        texts.push(node.arguments.slice(0, count).flatMap((text) => (ts.isStringLiteralLike(text) ? [text.text] : [])));
      }
    }
    ts.forEachChild(node, visit);
  };
  visit(ts.createSourceFile(file, readFileSync(file, 'utf8'), ts.ScriptTarget.Latest, true));
  return texts;
}
