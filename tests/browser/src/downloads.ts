/** Measurements of the files of an extension that a browser downloads. */

import { gzipSync } from 'node:zlib';

import type { Page } from 'playwright-core';

/**
 * The maximum amount of JavaScript, in kilobytes, that may be downloaded before the panel is
 * opened.
 */
export const MAX_EARLY_KB = 12;

/**
 * Returns the amount of JavaScript of an extension that the page has downloaded, in kilobytes after
 * compression. Each file counts once.
 */
export async function downloadedKilobytes(page: Page, extension: string): Promise<number> {
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
