/**
 * A fake server of a generated fleet. It serves the built page, and each of its answers can be
 * replaced.
 */

import { createReadStream, existsSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import path from 'node:path';
import { gzipSync } from 'node:zlib';

import { makeFleetResponse } from '../../../static/src/testing/fleet';
import type { Fleet } from '../../../static/src/wire';
import { ROOT } from './machine';

const PAGE = path.join(ROOT, 'static/dist');
const TYPES: Partial<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
};
/** The content security policy of the real server. */
const POLICY = "default-src 'self'; img-src 'self' data:; frame-ancestors 'self'; base-uri 'self'";

/**
 * A function that responds to a request, or returns `false` if the default response is to be sent.
 */
type RequestHandler = (request: IncomingMessage, response: ServerResponse) => boolean;

export class FakeFleet {
  /** The paths of all requests so far. */
  readonly asked: string[] = [];
  /** Called for each request before the default response is sent. */
  answer: RequestHandler = () => false;

  private packedOf: Fleet | null = null;
  private readonly bodies = new Map<string, Buffer>();

  private constructor(
    private readonly server: Server,
    public fleet: Fleet,
  ) {}

  static async start(fleet: Fleet): Promise<FakeFleet> {
    const server = createServer((request, response) => fake.serve(request, response));
    const fake = new FakeFleet(server, fleet);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    return fake;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}/`;
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    await new Promise((resolve) => this.server.close(resolve));
  }

  private serve(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? '/', this.url);
    this.asked.push(`${url.pathname}${url.search}`);
    if (this.answer(request, response)) {
      return;
    }
    if (url.pathname.includes('/api/')) {
      const answer =
        this.bodies.has(url.href) && this.packedOf === this.fleet
          ? {}
          : makeFleetResponse(this.fleet, url);
      if (answer === null) {
        response.writeHead(404).end('no such thing\n');
        return;
      }
      const body = this.compressResponse(url, answer);
      response
        .writeHead(200, { 'content-type': 'application/json', 'content-encoding': 'gzip' })
        .end(body);
      return;
    }
    this.sendFile(url.pathname, response);
  }

  /**
   * Returns the compressed response. Like in the real server, the response is cached until the
   * fleet changes.
   */
  private compressResponse(url: URL, answer: unknown): Buffer {
    if (this.packedOf !== this.fleet) {
      this.packedOf = this.fleet;
      this.bodies.clear();
    }
    const body = this.bodies.get(url.href) ?? gzipSync(JSON.stringify(answer));
    this.bodies.set(url.href, body);
    return body;
  }

  /**
   * Sends a file of the page. The page of a node consists of the same files as the page of the
   * fleet.
   */
  private sendFile(pathname: string, response: ServerResponse): void {
    const name = pathname.replace(/^\/nodes\/[^/]+\//, '/').replace(/\/$/, '/index.html');
    const file = path.join(PAGE, name);
    if (!file.startsWith(PAGE) || !existsSync(file)) {
      response.writeHead(404).end('no such file\n');
      return;
    }
    const type = TYPES[path.extname(file)] ?? 'application/octet-stream';
    response.writeHead(200, { 'content-type': type, 'content-security-policy': POLICY });
    createReadStream(file).pipe(response);
  }
}
