import { describe, expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/services', () => ({ ServerConnection: { makeRequest: vi.fn() } }));

import { ServerConnection } from '@jupyterlab/services';

import { diagnose, explain, streamUrl } from './stream';

function settings(changes: Partial<ServerConnection.ISettings> = {}): ServerConnection.ISettings {
  const base = {
    baseUrl: 'https://hub.example.org/user/me/',
    wsUrl: 'wss://hub.example.org/user/me/',
    token: 'a secret&more',
    appendToken: false,
  };
  return { ...base, ...changes } as ServerConnection.ISettings;
}

describe('the address of the stream', () => {
  it('keeps the prefix of a hub, and the token to itself', () => {
    expect(streamUrl(settings())).toBe('wss://hub.example.org/user/me/gpumon/api/v1/stream');
  });

  it('carries the token where Jupyter wants it there', () => {
    expect(streamUrl(settings({ appendToken: true }))).toBe(
      'wss://hub.example.org/user/me/gpumon/api/v1/stream?token=a%20secret%26more',
    );
    expect(streamUrl(settings({ appendToken: true, token: '' }))).not.toContain('token');
  });
});

describe('the diagnosis', () => {
  it('names the cure for each failure', () => {
    expect(explain(404)?.command).toBe('pip install jupyter-server-proxy');
    expect(explain(403)?.message).toContain('log in');
    expect(explain(500)?.command).toContain('gpumon serve');
    expect(explain(502)?.message).toContain('HTTP 502');
    expect(explain(200)?.message).toContain('WebSockets');
    expect(explain(302)).toBeNull();
  });

  it('asks the health of the server behind the proxy', async () => {
    vi.mocked(ServerConnection.makeRequest).mockResolvedValueOnce(new Response('', { status: 404 }));
    expect((await diagnose(settings()))?.title).toBe('The way to gpumon is missing');
    expect(vi.mocked(ServerConnection.makeRequest).mock.calls[0]?.[0]).toBe(
      'https://hub.example.org/user/me/gpumon/healthz',
    );
  });

  it('says so where Jupyter itself is gone', async () => {
    vi.mocked(ServerConnection.makeRequest).mockRejectedValueOnce(new TypeError('no network'));
    expect((await diagnose(settings()))?.message).toContain('Jupyter server does not answer');
  });
});
