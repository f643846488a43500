/** Functions and constants for the images of the documentation. */

import { mkdirSync } from 'node:fs';
import path from 'node:path';

import type { Locator, Page } from 'playwright-core';

import { ROOT } from '../src/machine';

const IMAGES = path.join(ROOT, 'docs/images');

/** The GPU source with simulated GPUs, which look the same on every machine. */
export const SOURCE = 'sim:4';

/** Writes a screenshot: of the visible part of a page, of the whole page, or of one element. */
export async function saveImage(
  what: Page | Locator,
  name: string,
  fullPage = false,
): Promise<void> {
  mkdirSync(IMAGES, { recursive: true });
  const options = { path: path.join(IMAGES, name), animations: 'disabled' as const };
  await ('context' in what ? what.screenshot({ ...options, fullPage }) : what.screenshot(options));
}
