/** A `gpumon serve` process like a user would start it in a terminal. */

import { makeEnvironment, GPUMON } from './machine';
import { findCollector } from './processes';
import { Program } from './program';

export class GpumonServer {
  private constructor(
    private readonly program: Program,
    /** The URL of the page. */
    readonly url: string,
  ) {}

  /** Starts a server on a loopback port, by default on any free port. */
  static async start(
    env: Record<string, string>,
    port = 0,
    more: readonly string[] = [],
  ): Promise<GpumonServer> {
    // With `--no-control`, other programs cannot find this server.
    const serve = ['serve', '--no-control', '--listen', `127.0.0.1:${port}`, ...more];
    return GpumonServer.run(serve, env);
  }

  /** Starts a server that only shows a fleet. */
  static async startFleet(more: readonly string[]): Promise<GpumonServer> {
    return GpumonServer.run(['fleet', '--listen', '127.0.0.1:0', ...more], {});
  }

  private static async run(
    args: readonly string[],
    env: Record<string, string>,
  ): Promise<GpumonServer> {
    const program = new Program(GPUMON, args, makeEnvironment(env));
    const address = /http:\/\/127\.0\.0\.1:\d+(?=\/?\s)/;
    const url = await program.waitFor('address', () => address.exec(program.output)?.[0] ?? null);
    return new GpumonServer(program, `${url}/`);
  }

  get port(): number {
    return Number(new URL(this.url).port);
  }

  get collector(): number | null {
    return findCollector(this.program.pid);
  }

  async stop(): Promise<void> {
    await this.program.stop();
  }
}
