/** Tests of the page of a server that requires signing in. */

import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';

import { expect } from 'vitest';

import { findViolations } from './axe';
import { it as base } from './fixtures';
import { GpumonServer } from './gpumon';

const TOKEN = '0123456789abcdef0123456789abcdef';

/** The content of the users file. The password of `ana` is `correct horse`. */
const USERS =
  'basic_auth_users:\n  ana: $2b$04$9KVBEGvapFjzzFQjgF330O/446X5e.EFNWNC3OenoHMAnjzfjtnRe\n';

/**
 * Starts a server with a file of secrets. Also returns a function that stops it and removes the
 * file.
 */
async function startServer(
  option: string,
  secrets: string,
): Promise<[GpumonServer, () => Promise<void>]> {
  const folder = mkdtempSync(path.join(tmpdir(), 'gpumon-'));
  const file = path.join(folder, 'secrets');
  writeFileSync(file, secrets, { mode: 0o600 });
  const server = await GpumonServer.start({ GPUMON_SOURCE: 'sim:2' }, 0, [option, file]);
  const stop = async (): Promise<void> => {
    await server.stop();
    rmSync(folder, { recursive: true });
  };
  return [server, stop];
}

const it = base
  .extend('server', async ({}, { onCleanup }) => {
    const [server, stop] = await startServer('--token-file', `run ana ${TOKEN}\n`);
    onCleanup(stop);
    return server;
  })
  .extend('passwords', async ({}, { onCleanup }) => {
    const [server, stop] = await startServer('--web-config', USERS);
    onCleanup(stop);
    return server;
  });

it('token is requested once until sign-out', async ({ page, view, server }) => {
  await page.goto(server.url);
  const form = page.getByTestId('gpumon-sign-in');
  await form.waitFor();
  for (const scheme of ['light', 'dark'] as const) {
    await page.emulateMedia({ colorScheme: scheme });
    await page.locator(`[data-theme=${scheme}]`).waitFor();
    expect(await findViolations(page, '.page-sign-in'), scheme).toEqual([]);
  }
  // The sign-in form is used without a mouse from here on.
  await page.keyboard.type('wrong');
  await page.keyboard.press('Enter');
  await page.getByRole('alert').getByText('This token is not valid.').waitFor();
  await page.keyboard.press('Escape');
  expect(await form.isVisible()).toBe(true);
  await page.keyboard.type(TOKEN);
  await page.keyboard.press('Enter');
  await view.waitUntilLive();
  expect(
    await page.evaluate(() => document.cookie + JSON.stringify(localStorage) + location.href),
  ).not.toContain(TOKEN);

  await page.reload();
  await view.waitUntilLive();
  expect(await form.count()).toBe(0);
  await page.locator('.gpumon-head-menu > summary').click();
  await page.getByTestId('gpumon-sign-out').click();
  await form.waitFor();
  await page.reload();
  await form.waitFor();
});

it('waiting time after many wrong attempts is shown', async ({ page, passwords }) => {
  await page.goto(passwords.url);
  await page.getByTestId('gpumon-sign-in').waitFor();
  const alertMessage = page.getByRole('alert');
  await page.getByLabel('User').fill('ana');
  for (let i = 0; i < 12 && !(await alertMessage.getByText('Too many').isVisible()); i += 1) {
    await page.getByLabel('Password').fill(`wrong ${i}`);
    const answered = page.waitForResponse((response) => response.url().endsWith('/api/v1/session'));
    await page.keyboard.press('Enter');
    await answered;
  }
  await alertMessage.getByText(/Too many wrong attempts\. Try again in \d+ seconds?\./).waitFor();
  expect(await page.getByRole('button', { name: 'Sign in' }).isDisabled()).toBe(true);
});
