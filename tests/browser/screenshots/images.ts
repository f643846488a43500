/** Where the pictures of the documentation are, and how they are taken. */

import { mkdirSync } from 'node:fs';
import path from 'node:path';

import type { Locator, Page } from 'playwright-core';

import { ROOT } from '../src/machine';

const IMAGES = path.join(ROOT, 'docs/images');

/** Simulated GPUs, which look the same on every machine. */
export const SOURCE = 'sim:4';

/** Writes one picture: of what a window shows of a page, of all of it, or of one element. */
export async function saveImage(
  what: Page | Locator,
  name: string,
  fullPage = false,
): Promise<void> {
  mkdirSync(IMAGES, { recursive: true });
  const options = { path: path.join(IMAGES, name), animations: 'disabled' as const };
  await ('context' in what ? what.screenshot({ ...options, fullPage }) : what.screenshot(options));
}
