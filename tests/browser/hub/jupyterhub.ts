/** A JupyterHub for tests, from the administrator's perspective. */

import { rmSync, writeFileSync } from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

import type { Page } from 'playwright-core';

import { createOfflineSettings } from '../src/jupyter';
import { makeEnvironment, newFolder, PYTHON, ROOT } from '../src/machine';
import { listGpumonPids, findPidByArgument } from '../src/processes';
import { Program } from '../src/program';

const TOKEN = 'only-for-this-test';
const CONFIG = fileURLToPath(new URL('jupyterhub_config.py', import.meta.url));
const PROXY = path.join(ROOT, 'node_modules/configurable-http-proxy/bin/configurable-http-proxy');
export type User = 'ana' | 'ben';

/** The hub's data about a user. */
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

  /**
   * Starts a hub. It starts the users' servers with the environment variables `env` and the
   * arguments `args`.
   */
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
        JUPYTERLAB_SETTINGS_DIR: createOfflineSettings(folder),
        GPUMON_DATA_DIR: 'none',
      },
    };
    const program = new Program(
      PYTHON,
      ['-m', 'jupyterhub', '--config', CONFIG],
      makeEnvironment({ GPUMON_TEST_HUB: JSON.stringify(given) }),
    );
    await program.waitFor('answer', () => isResponding(`${url}hub/health`));
    return new JupyterHub(program, folder, url);
  }

  /** Returns the URL of a user's server, with a trailing slash. */
  userUrl(user: User): string {
    return `${this.url}user/${user}/`;
  }

  /** Logs a user in, and opens a page of the user's server, which is started if needed. */
  async open(page: Page, user: User, where: string): Promise<void> {
    await page.goto(
      `${this.url}hub/login?next=${encodeURIComponent(`/hub/spawn/${user}?next=/user/${user}/${where}`)}`,
    );
    await page.getByLabel('Username').fill(user);
    await page.getByLabel('Password').fill('any');
    await page.getByRole('button', { name: 'Sign in' }).click();
    await page.waitForURL(`${this.userUrl(user)}${where}**`);
  }

  /** Sends a request to the Jupyter REST API of a user's server. */
  api<T>(user: User, method: string, where: string, body?: unknown): Promise<T> {
    return requestHub(`${this.userUrl(user)}api/${where}`, method, body);
  }

  /** Writes a file into a user's home directory. */
  write(user: User, name: string, text: string): void {
    writeFileSync(path.join(this.folder, user, name), text);
  }

  /** Returns the PID of a user's kernel. */
  async kernelPid(user: User): Promise<number> {
    const [kernel] = await this.api<{ id: string }[]>(user, 'GET', 'kernels');
    const server = await this.findServer(user);
    const pid =
      kernel === undefined || server === undefined
        ? null
        : findPidByArgument(server.state.pid, `kernel-${kernel.id}.json`);
    if (pid === null) {
      throw new Error(`${user} has no kernel`);
    }
    return pid;
  }

  /** Returns the users whose servers are running. */
  async runningUsers(): Promise<string[]> {
    const users = await requestHub<UserModel[]>(`${this.url}hub/api/users`, 'GET');
    return users.filter(({ servers }) => servers[''] !== undefined).map(({ name }) => name);
  }

  /** Returns the PIDs of the gpumon processes of a user's server. */
  async gpumonPids(user: User): Promise<number[]> {
    const server = await this.findServer(user);
    return server === undefined ? [] : listGpumonPids(server.state.pid);
  }

  /** Starts a program that shuts down servers after `idle_s` seconds without use. */
  startCuller(idle_s: number): Program {
    const options = [`--url=${this.url}hub/api`, `--timeout=${String(idle_s)}`, '--cull-every=1'];
    return new Program(
      PYTHON,
      ['-m', 'jupyterhub_idle_culler', ...options],
      makeEnvironment({ JUPYTERHUB_API_TOKEN: TOKEN }),
    );
  }

  async stop(): Promise<void> {
    await this.program.stop();
    rmSync(this.folder, { recursive: true, force: true });
  }

  private async findServer(user: User): Promise<UserModel['servers'][string]> {
    return (await requestHub<UserModel>(`${this.url}hub/api/users/${user}`, 'GET')).servers[''];
  }
}

async function requestHub<T>(url: string, method: string, body?: unknown): Promise<T> {
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

async function isResponding(url: string): Promise<true | null> {
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
