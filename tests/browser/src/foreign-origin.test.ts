/**
 * Tests with a user who is logged in to Jupyter and opens a page of another origin in the same
 * browser. The page must not be able to change anything.
 */

import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Page, Response } from 'playwright-core';
import { describe, expect } from 'vitest';

import { it as base } from './fixtures';
import type { JupyterServer, KernelSession } from './jupyter';
import { isRunning } from './processes';

/**
 * Returns the requests that could stop a kernel, pause the readings of GPUs, or start or end a run.
 */
const attempts = (kernel: KernelSession): [method: string, where: string][] => [
  ['DELETE', `api/kernels/${kernel.kernelId}`],
  ['DELETE', `api/sessions/${kernel.id}`],
  ['POST', `api/kernels/${kernel.kernelId}/interrupt`],
  ['POST', `api/kernels/${kernel.kernelId}/restart`],
  ['POST', 'api/shutdown'],
  ['POST', 'gpumon/api/v1/pause'],
  ['POST', 'gpumon/api/v1/resume'],
  ['POST', 'gpumon/api/v1/runs'],
  ['DELETE', 'gpumon/api/v1/runs/any'],
];

/**
 * Sends a request from a page with the user's cookies. Returns the content of the response if the
 * page may read it, and otherwise an empty text.
 */
const requestFromPage = (
  page: Page,
  method: string,
  url: string,
  referrerPolicy: ReferrerPolicy = 'origin',
): Promise<string> =>
  page.evaluate(
    async ([method, url, referrerPolicy]) => {
      const own = new URL(url).origin === location.origin;
      const xsrf = /_xsrf=([^;]+)/.exec(document.cookie)?.[1] ?? '';
      // A request from another origin is sent like that of a form, because the browser then sends
      // no preflight request. It contains the token that Jupyter requires: cookies do not depend on
      // the port, so the page can read the token from the cookie.
      const where = own ? url : `${url}?_xsrf=${encodeURIComponent(xsrf)}`;
      const mode = own || method !== 'POST' ? 'cors' : 'no-cors';
      const headers: Record<string, string> = own ? { 'X-XSRFToken': xsrf } : {};
      try {
        return await (
          await fetch(where, { method, mode, headers, referrerPolicy, credentials: 'include' })
        ).text();
      } catch {
        return '';
      }
    },
    [method, url, referrerPolicy] as const,
  );

/**
 * Returns the first frame of gpumon's stream that a page receives, or `null` if the connection is
 * refused.
 */
const firstFrame = (page: Page, url: string): Promise<string | null> =>
  page.evaluate(
    (url) =>
      new Promise<string | null>((resolve) => {
        const socket = new WebSocket(url.replace(/^http/, 'ws'));
        socket.onmessage = ({ data }: MessageEvent<string>) => {
          socket.close();
          resolve(data);
        };
        socket.onclose = () => resolve(null);
      }),
    url,
  );

const it = base
  /** A server of another origin, and the cookies that the browser has sent to it. */
  .extend('stranger', { scope: 'file' }, async ({}, { onCleanup }) => {
    const stranger: { url: string; cookies?: string | undefined } = { url: '' };
    const server = createServer((request, response) => {
      stranger.cookies ??= request.headers.cookie;
      response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>stranger</title>');
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    onCleanup(() => void server.close());
    stranger.url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}/user/me/`;
    return stranger;
  })
  /** A page of the Jupyter server. */
  .extend('own', async ({ simulated, page }) => {
    await page.goto(simulated.pageUrl('gpumon/'));
    await page.goto(simulated.pageUrl('lab'));
    return page;
  })
  /**
   * A page of another origin: the server has the same address but another port. This is the worst
   * case, because cookies do not depend on the port.
   */
  .extend('foreign', async ({ own, stranger }) => {
    const page = await own.context().newPage();
    await page.goto(stranger.url);
    return page;
  });

describe('page of another origin', () => {
  const isPaused = async (own: Page, jupyter: JupyterServer): Promise<boolean> =>
    (await requestFromPage(own, 'GET', `${jupyter.url}gpumon/api/v1/snapshot`)).includes(
      '"state":"paused"',
    );

  it('foreign page cannot read data despite cookies', async ({
    simulated,
    own,
    foreign,
    stranger,
  }) => {
    expect(stranger.cookies).toMatch(/username-.*_xsrf=|_xsrf=.*username-/);
    const stream = `${simulated.url}gpumon/api/v1/stream`;
    expect(await firstFrame(own, stream)).toContain('"type":"hello"');
    expect(await firstFrame(foreign, stream)).toBeNull();
    for (const where of ['gpumon/api/v1/snapshot', 'gpumon/metrics', 'api/sessions']) {
      expect(await requestFromPage(own, 'GET', simulated.url + where), where).not.toBe('');
      expect(await requestFromPage(foreign, 'GET', simulated.url + where), where).toBe('');
    }
  });

  it('foreign page cannot stop or pause anything', async ({ simulated, own, foreign }) => {
    const kernel = await simulated.startKernel('held.ipynb');
    const paused = (): Promise<boolean> => isPaused(own, simulated);
    const done: string[] = [];
    foreign.on('response', (response: Response) => {
      if (response.request().method() !== 'OPTIONS' && response.status() < 400) {
        done.push(`${response.request().method()} ${response.url()}: ${response.status()}`);
      }
    });
    for (const [method, where] of attempts(kernel)) {
      // If a page sends no referrer, the origin of its requests is "null".
      await requestFromPage(foreign, method, simulated.url + where, 'origin');
      await requestFromPage(foreign, method, simulated.url + where, 'no-referrer');
      expect(await paused(), where).toBe(false);
    }
    expect(done).toEqual([]);
    expect(await requestFromPage(own, 'GET', `${simulated.url}gpumon/api/v1/runs`)).toBe(
      '{"runs":[]}',
    );
    expect(isRunning(kernel.pid)).toBe(true);

    await requestFromPage(own, 'POST', `${simulated.url}gpumon/api/v1/pause`);
    await expect.poll(paused).toBe(true);
    await requestFromPage(own, 'DELETE', `${simulated.url}api/kernels/${kernel.kernelId}`);
    await expect.poll(() => isRunning(kernel.pid)).toBe(false);
  });
});
