/** What axe-core finds wrong with what stands in a page. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** One line for each rule and element of `selector` that violates it. */
export async function violations(page: Page, selector: string): Promise<string[]> {
  // Not as a script of the page, which its policy would refuse.
  await page.evaluate(SOURCE);
  const { violations } = await page.evaluate(
    (within) =>
      (window as unknown as { axe: { run: (selector: string) => Promise<AxeResults> } }).axe.run(
        within,
      ),
    selector,
  );
  return violations.flatMap(({ id, help, nodes }) =>
    nodes.map(({ html, any }) => `${id}: ${help}: ${html.slice(0, 200)} ${any[0]?.message ?? ''}`),
  );
}
