/** What a browser fetches of an extension. */

import { gzipSync } from 'node:zlib';

import type { Page } from 'playwright-core';

/** So much JavaScript at most is fetched before the panel is opened. */
export const BEFORE_KB = 12;

/**
 * How many kilobytes of JavaScript this page has fetched of an extension, each file once, as a
 * server would send it compressed.
 */
export async function kilobytes(page: Page, extension: string): Promise<number> {
  const urls = await page.evaluate(() =>
    performance.getEntriesByType('resource').map(({ name }) => name),
  );
  const own = new Set(
    urls.filter((url) => url.includes(`/lab/extensions/${extension}/`) && /\.js(\?|$)/.test(url)),
  );
  const sizes = [...own].map(async (url) => {
    const response = await page.request.get(url);
    return gzipSync(await response.body(), { level: 9 }).length;
  });
  return (await Promise.all(sizes)).reduce((sum, size) => sum + size, 0) / 1000;
}
