/** Tests of the page behind a reverse proxy with another host name. */

import { createServer, request, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import { afterEach, describe, expect } from 'vitest';

import { it as base } from './fixtures';
import { GpumonServer } from './gpumon';

interface Proxy {
  /**
   * The origin of the page in the browser. Chromium resolves all names below `localhost` to this
   * machine.
   */
  origin: string;
  /** The port of the server behind the proxy. */
  port: number;
  /**
   * Whether the proxy forwards the browser's `Host` header unchanged. `upgrades` states whether it
   * forwards WebSockets.
   */
  keepsHost: boolean;
  upgrades: boolean;
}

const it = base.extend('proxy', async ({}, { onCleanup }) => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onCleanup(() => {
    server.closeAllConnections();
    server.close();
  });
  const origin = `http://gpus.localhost:${String((server.address() as AddressInfo).port)}`;
  const proxy: Proxy = { origin, port: 0, keepsHost: true, upgrades: true };
  forward(server, proxy);
  return proxy;
});

/** Forwards requests like `proxy_pass` of nginx. */
function forward(server: Server, proxy: Proxy): void {
  const passOn = ({ url, method, headers }: IncomingMessage): ReturnType<typeof request> => {
    const host = proxy.keepsHost ? headers.host : `127.0.0.1:${String(proxy.port)}`;
    return request({
      port: proxy.port,
      host: '127.0.0.1',
      path: url,
      method,
      headers: { ...headers, host },
    });
  };
  server.on('request', (incoming, outgoing) => {
    const passed = passOn(incoming);
    passed.on('response', (answer) =>
      answer.pipe(outgoing.writeHead(answer.statusCode ?? 502, answer.headers)),
    );
    passed.on('error', () => outgoing.destroy());
    incoming.pipe(passed);
  });
  server.on('upgrade', (incoming, socket) => {
    if (!proxy.upgrades) {
      socket.end('HTTP/1.1 400 Bad Request\r\n\r\n');
      return;
    }
    const passed = passOn(incoming).end();
    passed.on('response', () => socket.end('HTTP/1.1 403 Forbidden\r\n\r\n'));
    passed.on('error', () => socket.destroy());
    passed.on('upgrade', ({ rawHeaders }, upstream, head) => {
      const lines = rawHeaders.flatMap((name, i) =>
        i % 2 === 0 ? [`${name}: ${rawHeaders[i + 1] ?? ''}`] : [],
      );
      socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`);
      socket.write(head);
      for (const [from, to] of [
        [socket, upstream],
        [upstream, socket],
      ] as const) {
        from.pipe(to);
        from.on('error', () => to.destroy());
      }
    });
  });
}

describe('behind a reverse proxy', () => {
  let server: GpumonServer | null = null;
  const start = async (proxy: Proxy, ...more: string[]): Promise<void> => {
    server = await GpumonServer.start({ GPUMON_SOURCE: 'sim:2' }, 0, more);
    proxy.port = server.port;
  };
  afterEach(async () => {
    await server?.stop();
    server = null;
  });

  it('page is live at its public origin', async ({ proxy, page, view }) => {
    await start(proxy, '--public-origin', proxy.origin);
    for (const keepsHost of [true, false]) {
      proxy.keepsHost = keepsHost;
      await page.goto(proxy.origin);
      await view.waitUntilLive();
    }
  });

  it('unknown public origin is explained', async ({ proxy, page }) => {
    await start(proxy);
    for (const keepsHost of [true, false]) {
      proxy.keepsHost = keepsHost;
      await page.goto(proxy.origin);
      await expect.poll(() => page.locator('body').innerText()).toContain('--public-origin');
    }
  });

  it('proxy without WebSockets is explained', async ({ proxy, page }) => {
    proxy.upgrades = false;
    await start(proxy, '--public-origin', proxy.origin);
    await page.goto(proxy.origin);
    await page.getByText('No WebSocket connection').waitFor();
    expect(await page.locator('body').innerText()).toContain(
      `gpumon serve --public-origin ${proxy.origin}`,
    );
  });
});
