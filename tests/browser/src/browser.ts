/** Headless Chromium, and the problems of its pages. */

import { mkdirSync } from 'node:fs';
import path from 'node:path';

import { chromium, type Browser, type BrowserContextOptions, type Page } from 'playwright-core';
import type { TestContext } from 'vitest';

import { chromiumPath, FAILURES } from './machine';
import { TIMEOUT_MS } from './patience';

export async function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: chromiumPath(),
    args: [
      // The sandbox does not work in containers, and the tests only open gpumon's own pages.
      '--no-sandbox',
      '--disable-gpu',
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  });
}

/** The unwanted behavior of a page. */
export interface PageProblems {
  /** Errors on the console, and uncaught exceptions. */
  errors: string[];
  /** Requests to origins other than the page's own. */
  foreignRequests: string[];
}

/** Opens a new page in a browser context without stored data. */
export async function newPage(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<{ page: Page; conduct: PageProblems }> {
  const context = await browser.newContext({ viewport: { width: 1400, height: 900 }, ...options });
  const page = await context.newPage();
  const conduct: PageProblems = { errors: [], foreignRequests: [] };
  page.on('console', (message) => {
    if (message.type() === 'error') {
      conduct.errors.push(message.text());
    }
  });
  page.on('pageerror', (error) => conduct.errors.push(error.message));
  page.on('request', (request) => {
    const { protocol, origin } = new URL(request.url());
    const own = new URL(page.url() === 'about:blank' ? request.url() : page.url()).origin;
    if (protocol.startsWith('http') && origin !== own) {
      conduct.foreignRequests.push(request.url());
    }
  });
  page.setDefaultTimeout(TIMEOUT_MS);
  return { page, conduct };
}

/**
 * Closes a page at the end of a test. If the test has failed, writes a screenshot to
 * target/browser.
 */
export async function closePage(page: Page, task: TestContext['task']): Promise<void> {
  if (task.result?.state === 'fail') {
    mkdirSync(FAILURES, { recursive: true });
    const name = task.fullName.replaceAll(/[^a-z0-9]+/gi, '-');
    await page.screenshot({ path: path.join(FAILURES, `${name}.png`) }).catch(() => undefined);
  }
  await page.context().close();
}
