/** A JupyterHub, as somebody administers it. */

import { rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import type { Page } from 'playwright-core';

import { quietSettings } from '../src/jupyter';
import { environment, newFolder, PYTHON, ROOT } from '../src/machine';
import { gpumonPidsBelow, pidBelow } from '../src/processes';
import { Program } from '../src/program';

const TOKEN = 'only-for-this-test';
const CONFIG = fileURLToPath(new URL('jupyterhub_config.py', import.meta.url));
const PROXY = path.join(ROOT, 'node_modules/configurable-http-proxy/bin/configurable-http-proxy');
export type User = 'ana' | 'ben';

/** What the hub knows about a user. */
interface UserModel {
  name: string;
  servers: Record<string, { state: { pid: number } } | undefined>;
}

export class JupyterHub {
  private constructor(
    private readonly program: Program,
    private readonly folder: string,
    private readonly url: string,
  ) {}

  /** Starts a hub whose users' servers have these environment variables and arguments. */
  static async start(env: Record<string, string>, args: readonly string[]): Promise<JupyterHub> {
    const folder = newFolder();
    const [port, hub_port, proxy_port] = await Promise.all([freePort(), freePort(), freePort()]);
    const url = `http://127.0.0.1:${String(port)}/`;
    const given = {
      folder,
      url,
      hub_port,
      proxy_port,
      token: TOKEN,
      proxy: [process.execPath, PROXY],
      arguments: args,
      environment: {
        ...env,
        JUPYTERLAB_SETTINGS_DIR: quietSettings(folder),
        GPUMON_DATA_DIR: 'none',
      },
    };
    const program = new Program(
      PYTHON,
      ['-m', 'jupyterhub', '--config', CONFIG],
      environment({ GPUMON_TEST_HUB: JSON.stringify(given) }),
    );
    await program.until('answer', () => answers(`${url}hub/health`));
    return new JupyterHub(program, folder, url);
  }

  /** The address of a user's server, with a closing slash. */
  at(user: User): string {
    return `${this.url}user/${user}/`;
  }

  /**
   * Logs a user in, and opens a page of the user's own server, which is started where it does not
   * run.
   */
  async open(page: Page, user: User, where: string): Promise<void> {
    await page.goto(
      `${this.url}hub/login?next=${encodeURIComponent(`/hub/spawn/${user}?next=/user/${user}/${where}`)}`,
    );
    await page.getByLabel('Username').fill(user);
    await page.getByLabel('Password').fill('any');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(`${this.at(user)}${where}**`);
  }

  /** Asks Jupyter's REST interface of a user's server. */
  api<T>(user: User, method: string, where: string, body?: unknown): Promise<T> {
    return ask(`${this.at(user)}api/${where}`, method, body);
  }

  /** Puts a file into a user's home. */
  write(user: User, name: string, text: string): void {
    writeFileSync(path.join(this.folder, user, name), text);
  }

  /** The process of a user's kernel. */
  async kernelPid(user: User): Promise<number> {
    const [kernel] = await this.api<{ id: string }[]>(user, 'GET', 'kernels');
    const server = await this.server(user);
    const pid =
      kernel === undefined || server === undefined
        ? null
        : pidBelow(server.state.pid, `kernel-${kernel.id}.json`);
    if (pid === null) {
      throw new Error(`${user} has no kernel`);
    }
    return pid;
  }

  /** The users whose servers run. */
  async running(): Promise<string[]> {
    const users = await ask<UserModel[]>(`${this.url}hub/api/users`, 'GET');
    return users.filter(({ servers }) => servers[''] !== undefined).map(({ name }) => name);
  }

  /** The gpumons that a user's server has started. */
  async gpumons(user: User): Promise<number[]> {
    const server = await this.server(user);
    return server === undefined ? [] : gpumonPidsBelow(server.state.pid);
  }

  /** Ends servers that nobody has used for so long, as long as it runs. */
  cull(idle_s: number): Program {
    const options = [`--url=${this.url}hub/api`, `--timeout=${String(idle_s)}`, '--cull-every=1'];
    return new Program(
      PYTHON,
      ['-m', 'jupyterhub_idle_culler', ...options],
      environment({ JUPYTERHUB_API_TOKEN: TOKEN }),
    );
  }

  async stop(): Promise<void> {
    await this.program.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async server(user: User): Promise<UserModel['servers'][string]> {
    return (await ask<UserModel>(`${this.url}hub/api/users/${user}`, 'GET')).servers[''];
  }
}

async function ask<T>(url: string, method: string, body?: unknown): Promise<T> {
  const response = await fetch(url, {
    method,
    headers: { Authorization: `token ${TOKEN}`, 'Content-Type': 'application/json' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!response.ok) {
    throw new Error(`${method} ${url}: ${response.status} ${await response.text()}`);
  }
  return (await response.json()) as T;
}

async function answers(url: string): Promise<true | null> {
  try {
    return (await fetch(url)).ok ? true : null;
  } catch {
    return null;
  }
}

function freePort(): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo;
      server.close(() => resolve(port));
    });
  });
}
