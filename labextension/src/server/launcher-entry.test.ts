import { beforeEach, describe, expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/services', () => ({ ServerConnection: { makeRequest: vi.fn() } }));

import { ServerConnection } from '@jupyterlab/services';

import { findOtherPackage, hasAlertRules } from './launcher-entry';

const settings = { baseUrl: 'https://hub.example.org/user/me/' } as ServerConnection.ISettings;
const request = vi.mocked(ServerConnection.makeRequest);

function answer(body: string, status = 200): void {
  request.mockImplementation(() => Promise.resolve(new Response(body, { status })));
}

function serversInfo(name: string, path_info?: string): string {
  const server_processes = [
    { name: 'rstudio', launcher_entry: {} },
    { name, launcher_entry: { path_info } },
  ];
  return JSON.stringify({ server_processes });
}

beforeEach(() => {
  request.mockReset();
});

describe('alert rules', () => {
  it('are reported by the proxy, which starts nothing for it', async () => {
    answer(serversInfo('gpumon', 'gpumon/?alerts'));
    expect(await hasAlertRules(settings)).toBe(true);
    expect(request.mock.calls[0]?.[0]).toBe('https://hub.example.org/user/me/server-proxy/servers-info');
    answer(serversInfo('gpumon', 'gpumon/?alerts&other=0.0.11'));
    expect(await hasAlertRules(settings)).toBe(true);
    for (const info of [['gpumon', 'gpumon/'], ['gpumon'], ['other', 'other/?alerts'], ['gpumon', 'gpumon/?other=1']]) {
      answer(serversInfo(...(info as [string, string?])));
      expect(await hasAlertRules(settings), info.join()).toBe(false);
    }
  });
});

describe('another package called gpumon', () => {
  it('is reported with its version', async () => {
    answer(serversInfo('gpumon', 'gpumon/?alerts&other=0.0.11'));
    expect(await findOtherPackage(settings)).toBe('0.0.11');
    answer(serversInfo('gpumon', 'gpumon/?alerts'));
    expect(await findOtherPackage(settings)).toBeNull();
  });
});

it('reports nothing where the proxy is missing, of another kind or does not answer', async () => {
  for (const [body, status] of [
    ['no such page', 404],
    ['<html>Password:</html>', 200],
    ['{}', 200],
  ] as const) {
    answer(body, status);
    expect([await hasAlertRules(settings), await findOtherPackage(settings)]).toEqual([false, null]);
  }
  request.mockImplementation(() => Promise.reject(new TypeError('no network')));
  expect([await hasAlertRules(settings), await findOtherPackage(settings)]).toEqual([false, null]);
});
