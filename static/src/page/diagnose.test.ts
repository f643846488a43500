// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';

import { diagnoseConnection, diagnoseNode } from './diagnose';

afterEach(() => vi.unstubAllGlobals());

it('responding server indicates a proxy problem', async () => {
  const fetch = vi.fn(() => Promise.resolve(new Response('ok\n')));
  vi.stubGlobal('fetch', fetch);
  expect((await diagnoseConnection())?.command).toBe(
    `gpumon serve --public-origin ${location.origin}`,
  );
  expect(String(fetch.mock.calls.at(0))).toContain('healthz');
});

it('failed or unexpected response yields no diagnosis', async () => {
  for (const response of [new Response('log in'), new Response('ok', { status: 502 })]) {
    vi.stubGlobal('fetch', () => Promise.resolve(response));
    expect(await diagnoseConnection()).toBeNull();
  }
});

it('reason why node cannot be opened is shown', async () => {
  const answer = (body: string, status: number) => () =>
    Promise.resolve(new Response(body, { status }));
  const why = 'n1: https://n1:9123/ asks for a token; start it with --node-hosts PATTERN';
  expect((await diagnoseNode(answer(`${why}\u202e\n`, 502)))?.message).toMatch(
    /--node-hosts PATTERN.$/,
  );
  for (const status of [200, 401]) {
    expect(await diagnoseNode(answer('{}', status))).toBeNull();
  }
  expect(await diagnoseNode(answer('', 502))).toBeNull();
});
