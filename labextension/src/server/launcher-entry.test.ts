import { beforeEach, expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/services', () => ({ ServerConnection: { makeRequest: vi.fn() } }));

import { ServerConnection } from '@jupyterlab/services';

import { readMarks } from './launcher-entry';

const settings = { baseUrl: 'https://hub.example.org/user/me/' } as ServerConnection.ISettings;
const NO_FLAGS = { alerts: false, fleet: false, otherPackage: null };
const request = vi.mocked(ServerConnection.makeRequest);

function respondWith(body: string, status = 200): void {
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

it('launcher entry contains alert and fleet flags', async () => {
  for (const [info, marks] of [
    [['gpumon', 'gpumon/?alerts'], { ...NO_FLAGS, alerts: true }],
    [['gpumon', 'gpumon/?fleet'], { ...NO_FLAGS, fleet: true }],
    [
      ['gpumon', 'gpumon/?alerts&fleet&other=0.0.11'],
      { alerts: true, fleet: true, otherPackage: '0.0.11' },
    ],
    [['gpumon', 'gpumon/'], NO_FLAGS],
    [['gpumon'], NO_FLAGS],
    [['other', 'other/?alerts'], NO_FLAGS],
  ] as const) {
    respondWith(serversInfo(...(info as unknown as [string, string?])));
    expect(await readMarks(settings), info.join()).toEqual(marks);
  }
  expect(request.mock.calls[0]?.[0]).toBe(
    'https://hub.example.org/user/me/server-proxy/servers-info',
  );
});

it('invalid response does not set launcher flags', async () => {
  for (const [body, status] of [
    ['no such page', 404],
    ['<html>Password:</html>', 200],
    ['{}', 200],
  ] as const) {
    respondWith(body, status);
    expect(await readMarks(settings)).toEqual(NO_FLAGS);
  }
  request.mockImplementation(() => Promise.reject(new TypeError('no network')));
  expect(await readMarks(settings)).toEqual(NO_FLAGS);
});
