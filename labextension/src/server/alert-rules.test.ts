import { expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/services', () => ({ ServerConnection: { makeRequest: vi.fn() } }));

import { ServerConnection } from '@jupyterlab/services';

import { hasAlertRules } from './alert-rules';

const settings = { baseUrl: 'https://hub.example.org/user/me/' } as ServerConnection.ISettings;
const request = vi.mocked(ServerConnection.makeRequest);

function answer(body: string, status = 200): Promise<boolean> {
  request.mockResolvedValueOnce(new Response(body, { status }));
  return hasAlertRules(settings);
}
const told = (name: string, path_info?: string): string =>
  JSON.stringify({
    server_processes: [
      { name: 'rstudio', launcher_entry: {} },
      { name, launcher_entry: { path_info } },
    ],
  });

it('is told by the proxy, which starts nothing for it', async () => {
  expect(await answer(told('gpumon', 'gpumon/?alerts'))).toBe(true);
  expect(request.mock.calls[0]?.[0]).toBe('https://hub.example.org/user/me/server-proxy/servers-info');
  expect(await answer(told('gpumon', 'gpumon/'))).toBe(false);
  expect(await answer(told('gpumon'))).toBe(false);
  expect(await answer(told('other', 'other/?alerts'))).toBe(false);
});

it('is not so where the proxy is missing, of another kind or does not answer', async () => {
  expect(await answer('no such page', 404)).toBe(false);
  expect(await answer('<html>Password:</html>')).toBe(false);
  expect(await answer('{}')).toBe(false);
  request.mockRejectedValueOnce(new TypeError('no network'));
  expect(await hasAlertRules(settings)).toBe(false);
});
