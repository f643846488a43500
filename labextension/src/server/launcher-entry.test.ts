import { beforeEach, expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/services', () => ({ ServerConnection: { makeRequest: vi.fn() } }));

import { ServerConnection } from '@jupyterlab/services';

import { readMarks } from './launcher-entry';

const settings = { baseUrl: 'https://hub.example.org/user/me/' } as ServerConnection.ISettings;
const NONE = { alerts: false, fleet: false, otherPackage: null };
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

it('marks are read without starting a server', async () => {
  for (const [info, marks] of [
    [['gpumon', 'gpumon/?alerts'], { ...NONE, alerts: true }],
    [['gpumon', 'gpumon/?fleet'], { ...NONE, fleet: true }],
    [
      ['gpumon', 'gpumon/?alerts&fleet&other=0.0.11'],
      { alerts: true, fleet: true, otherPackage: '0.0.11' },
    ],
    [['gpumon', 'gpumon/'], NONE],
    [['gpumon'], NONE],
    [['other', 'other/?alerts'], NONE],
  ] as const) {
    answer(serversInfo(...(info as unknown as [string, string?])));
    expect(await readMarks(settings), info.join()).toEqual(marks);
  }
  expect(request.mock.calls[0]?.[0]).toBe(
    'https://hub.example.org/user/me/server-proxy/servers-info',
  );
});

it('unsuitable answer yields no marks', async () => {
  for (const [body, status] of [
    ['no such page', 404],
    ['<html>Password:</html>', 200],
    ['{}', 200],
  ] as const) {
    answer(body, status);
    expect(await readMarks(settings)).toEqual(NONE);
  }
  request.mockImplementation(() => Promise.reject(new TypeError('no network')));
  expect(await readMarks(settings)).toEqual(NONE);
});
