/** A check of pages with axe-core, which finds accessibility violations. */

import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';

import type { AxeResults } from 'axe-core';
import type { Page } from 'playwright-core';

const SOURCE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

/** Returns one line for each violation of a rule by an element within `selector`. */
export async function findViolations(page: Page, selector: string): Promise<string[]> {
  // A script element would be blocked by the page's content security policy.
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
