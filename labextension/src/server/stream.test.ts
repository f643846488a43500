import { describe, expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/services', () => ({ ServerConnection: { makeRequest: vi.fn() } }));

import { ServerConnection } from '@jupyterlab/services';

import { nullTranslator } from '@jupyterlab/translation';

import { version } from '../../package.json';
import { diagnoseStream, explainStatus, explainVersionMismatch, streamUrl } from './stream';

const trans = nullTranslator.load('');

function createSettings(
  changes: Partial<ServerConnection.ISettings> = {},
): ServerConnection.ISettings {
  const base = {
    baseUrl: 'https://hub.example.org/user/me/',
    wsUrl: 'wss://hub.example.org/user/me/',
    token: 'a secret&more',
    appendToken: false,
  };
  return { ...base, ...changes } as ServerConnection.ISettings;
}

describe('stream URL', () => {
  it('stream URL keeps hub prefix and hides token', () => {
    expect(streamUrl(createSettings())).toBe(
      'wss://hub.example.org/user/me/gpumon/api/v1/stream?encoding=deflate-raw',
    );
  });

  it('stream URL has token if Jupyter requires it', () => {
    expect(streamUrl(createSettings({ appendToken: true }))).toBe(
      'wss://hub.example.org/user/me/gpumon/api/v1/stream?encoding=deflate-raw&token=a%20secret%26more',
    );
    expect(streamUrl(createSettings({ appendToken: true, token: '' }))).not.toContain('token');
  });
});

describe('connection diagnosis', () => {
  it('each failure message names a fix', () => {
    expect(explainStatus(404, trans)?.command).toContain('pip install jupyter-server-proxy');
    expect(explainStatus(403, trans)?.message).toContain('log in');
    expect(explainStatus(424, trans)?.message).toMatch(
      /JupyterHub stops idle servers. Reload the page/,
    );
    expect(explainStatus(500, trans)?.command).toContain('gpumon serve');
    expect(explainStatus(502, trans)?.message).toContain('HTTP 502');
    expect(explainStatus(200, trans)?.message).toContain('WebSockets');
    expect(explainStatus(0, trans)?.message).toMatch(
      /is not responding\..* run this in a terminal/,
    );
    expect(explainStatus(302, trans)).toBeNull();
  });

  it('diagnosis requests server health behind the proxy', async () => {
    vi.mocked(ServerConnection.makeRequest).mockResolvedValueOnce(
      new Response('', { status: 404 }),
    );
    expect((await diagnoseStream(createSettings(), trans))?.title).toBe(
      'gpumon is not proxied by this Jupyter server',
    );
    expect(vi.mocked(ServerConnection.makeRequest).mock.calls[0]?.[0]).toBe(
      'https://hub.example.org/user/me/gpumon/healthz',
    );
  });

  it('login page is not mistaken for the server', async () => {
    const answer = async (text: string): Promise<string | undefined> => {
      vi.mocked(ServerConnection.makeRequest).mockResolvedValueOnce(
        new Response(text, { status: 200 }),
      );
      return (await diagnoseStream(createSettings(), trans))?.title;
    };
    expect(await answer('<html>Password:</html>')).toBe('Not logged in');
    expect(await answer('ok\n')).toBe('No WebSocket connection');
  });

  it('failed start names the interfering package', async () => {
    const path_info = 'gpumon/?other=0.0.11';
    vi.mocked(ServerConnection.makeRequest)
      .mockResolvedValueOnce(new Response('', { status: 500 }))
      .mockResolvedValueOnce(
        new Response(
          JSON.stringify({ server_processes: [{ name: 'gpumon', launcher_entry: { path_info } }] }),
        ),
      );
    const diagnosis = await diagnoseStream(createSettings(), trans);
    expect(diagnosis?.title).toBe('Another package called gpumon is installed');
    expect(diagnosis?.message).toMatch(
      /gpumon 0\.0\.11 .*reinstall the wheel of this program, then restart Jupyter/,
    );
    expect(diagnosis?.command).toBe('pip uninstall gpumon jupyterlab-gpumon');
    vi.mocked(ServerConnection.makeRequest)
      .mockResolvedValueOnce(new Response('', { status: 500 }))
      .mockResolvedValueOnce(new Response('{"server_processes": []}'));
    expect((await diagnoseStream(createSettings(), trans))?.title).toBe('gpumon failed to start');
  });

  it('missing Jupyter server is reported', async () => {
    vi.mocked(ServerConnection.makeRequest).mockRejectedValueOnce(new TypeError('no network'));
    expect((await diagnoseStream(createSettings(), trans))?.message).toContain(
      'Jupyter server is not responding',
    );
  });
});

describe('server version mismatch', () => {
  it('both incompatible versions are shown with a fix', () => {
    const older = explainVersionMismatch('0.1.7', trans, '0.2.0');
    expect(older?.message).toMatch(
      /gpumon 0\.1\.7, but this panel is version 0\.2\.0.*Restart Jupyter.*install version 0\.2\.0/,
    );
    expect(older?.command).toBe('pip install jupyterlab_gpumon-*.whl');
    expect(explainVersionMismatch('1.0.0', trans, '0.9.0')?.message).toMatch(
      /Reload the page.*install version 1\.0\.0/,
    );
  });

  it('compatible versions show no message', () => {
    expect(explainVersionMismatch('0.2.0', trans, '0.2.9')).toBeNull();
    expect(explainVersionMismatch(version, trans)).toBeNull();
    expect(explainVersionMismatch('unheard of', trans)).toBeNull();
  });
});
