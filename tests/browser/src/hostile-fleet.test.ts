/**
 * Tests with a compromised node and a compromised Prometheus. Neither may run code in the origin of
 * the fleet's server.
 */

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

import type { Page } from 'playwright-core';
import { describe, expect } from 'vitest';

import { FakePrometheus } from './fake-prometheus';
import { it } from './fixtures';
import { GpumonServer } from './gpumon';

/** A script that adds a mark on the fleet's server. Only the server's own page may do this. */
const SCRIPT = `
  document.title = 'hacked';
  fetch('/api/v1/marks', { method: 'POST', headers: { 'X-Gpumon': 'run' }, body: '{"text":"hacked"}' });`;
const HTML = `<!doctype html><title>node</title><script>${SCRIPT}</script><img src=x onerror="${SCRIPT}">`;
/** The media types for which a browser may show HTML as a page. */
const TYPES = [
  'text/html',
  'text/plain, text/html',
  'text/plain;charset=x, text/html',
  'application/json, text/html',
  'application/xhtml+xml',
  'image/svg+xml',
  'text/plain',
  'application/json',
  '',
];
const PATHS = [
  '',
  'api/v1/snapshot',
  'api/v1/runs',
  'api/v1/history',
  'api/v1/session',
  '%61pi/v1/snapshot',
  'x.html',
];

/** A server on loopback that sends the same response to all requests. */
class ForeignServer {
  private constructor(
    private readonly server: Server,
    public type: string,
  ) {}

  static async start(page: () => string): Promise<ForeignServer> {
    const server = createServer((_, response) => {
      response
        .writeHead(200, stranger.type === '' ? {} : { 'content-type': stranger.type })
        .end(page());
    });
    const stranger = new ForeignServer(server, 'text/html');
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return stranger;
  }

  get port(): number {
    return (this.server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }
}

describe('hostile fleet', () => {
  let node: ForeignServer;
  let stranger: ForeignServer;
  let prometheus: FakePrometheus;
  let server: GpumonServer;
  let target = '';
  /** The requests to the fleet's server that could have side effects. */
  let changes: string[] = [];

  it.beforeEach(async ({ page }) => {
    node = await ForeignServer.start(() => HTML);
    stranger = await ForeignServer.start(
      () => `<!doctype html><script>location = ${JSON.stringify(target)}</script>`,
    );
    prometheus = await FakePrometheus.start(
      [`127.0.0.1:${node.port}`, `localhost:${node.port}`],
      HTML,
    );
    server = await GpumonServer.start({ GPUMON_SOURCE: 'sim:2' }, 0, [
      '--fleet-prometheus',
      prometheus.url,
      '--fleet-node-url',
      'http://{host}:{port}/',
    ]);
    changes = [];
    page.on('request', (request) => {
      if (request.url().startsWith(server.url) && !['GET', 'HEAD'].includes(request.method())) {
        changes.push(`${request.method()} ${request.url()}`);
      }
    });
  });
  it.afterEach(async () => {
    expect(changes).toEqual([]);
    await Promise.all([server.stop(), prometheus.stop(), stranger.stop(), node.stop()]);
  });

  const nodes = async (): Promise<string[]> => {
    const answer = await fetch(`${server.url}api/v1/fleet`);
    return ((await answer.json()) as { nodes: { name: string[] } }).nodes.name;
  };
  const nothingRan = async (page: Page, where: string): Promise<void> => {
    expect(await page.title(), where).not.toBe('hacked');
    expect(changes, where).toEqual([]);
    const snapshot = await fetch(`${server.url}api/v1/snapshot`);
    expect(await snapshot.text(), where).not.toContain('hacked');
  };

  it('response of linked node does not run scripts', async ({ page }) => {
    const [name = ''] = await nodes();
    for (const type of TYPES) {
      node.type = type;
      for (const path of PATHS) {
        target = `${server.url}nodes/${encodeURIComponent(name)}/${path}`;
        await page.goto(`http://127.0.0.1:${stranger.port}/`);
        await page.waitForURL(target);
        await page.waitForLoadState();
        await nothingRan(page, `${type} at ${path}`);
      }
    }
  });

  it('hostile names are text in every view', async ({ page }) => {
    await page.goto(`${server.url}#fleet`);
    await page.locator('[data-testid=gpumon-fleet]:not([data-state=loading])').waitFor();
    for (const view of ['Map', 'Nodes', 'GPUs', 'Users', 'Find free GPUs', 'Events']) {
      await page.getByRole('tab', { name: view, exact: true }).click();
      await page.locator('[role=tab][aria-selected=true]', { hasText: view }).waitFor();
      expect(await page.locator('img[src=x], [onerror]').count(), view).toBe(0);
      await nothingRan(page, view);
    }
    for (const type of ['text/plain, text/html', 'application/json']) {
      node.type = type;
      for (const name of await nodes()) {
        await page.goto(`${server.url}nodes/${encodeURIComponent(name)}/`);
        await page
          .getByText('is not a gpumon server')
          .or(page.getByText('cannot be parsed'))
          .first()
          .waitFor();
        expect(await page.locator('img[src=x], [onerror]').count(), name).toBe(0);
        await nothingRan(page, name);
      }
    }
  });
});
