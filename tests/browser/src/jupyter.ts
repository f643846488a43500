/** A JupyterLab server for tests, with a URL prefix like behind a hub. */

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { makeEnvironment, JUPYTER_LAB, newFolder, makeFakeEnvironment } from './machine';
import type { KernelSpec } from './notebook-file';
import { findCollector, listGpumonPids, isRunning, findPidByArgument } from './processes';
import { Program } from './program';

const TOKEN = 'only-for-this-test';
const SCENARIO = 'scenario.toml';
const ONE_GPU = 'gpus = 1\n';
const BASE_URL = '/user/me/';

/** Options that differ from the default. */
export interface ServerOptions {
  /** The Jupyter program of another virtual environment. */
  program?: string;
  /** Additional command-line arguments of the server. */
  arguments?: readonly string[];
}

/** A notebook or console with a running kernel. */
export interface KernelSession {
  id: string;
  kernelId: string;
  /** The PID of the kernel. */
  pid: number;
}

export class JupyterServer {
  private constructor(
    private readonly program: Program,
    private readonly folder: string,
    /** The URL with the prefix and a trailing slash. */
    readonly url: string,
  ) {}

  /** Starts a server whose gpumon reads a scenario. Tests can replace the scenario. */
  static startScripted(): Promise<JupyterServer> {
    const folder = newFolder();
    writeFileSync(path.join(folder, SCENARIO), ONE_GPU);
    return JupyterServer.start(makeFakeEnvironment(path.join(folder, SCENARIO)), {}, folder);
  }

  /** Starts a server whose gpumon has the environment variables `env`. */
  static async start(
    env: Record<string, string>,
    options: ServerOptions = {},
    folder = newFolder(),
  ): Promise<JupyterServer> {
    const settings = createOfflineSettings(folder);
    mkdirSync(path.join(folder, 'root'));
    const program = new Program(
      options.program ?? JUPYTER_LAB,
      [
        '--no-browser',
        // Without this option, the server would ask for confirmation after an interrupted test run.
        '-y',
        '--allow-root',
        '--ip=127.0.0.1',
        '--port=0',
        `--ServerApp.base_url=${BASE_URL}`,
        `--ServerApp.root_dir=${path.join(folder, 'root')}`,
        ...(options.arguments ?? []),
      ],
      makeEnvironment({
        JUPYTER_TOKEN: TOKEN,
        JUPYTER_CONFIG_DIR: path.join(folder, 'config'),
        JUPYTER_DATA_DIR: path.join(folder, 'data'),
        JUPYTER_RUNTIME_DIR: path.join(folder, 'runtime'),
        JUPYTERLAB_SETTINGS_DIR: settings,
        JUPYTERLAB_WORKSPACES_DIR: path.join(folder, 'workspaces'),
        // The gpumon of each server has its own history.
        XDG_STATE_HOME: path.join(folder, 'state'),
        ...env,
      }),
    );
    const url = await program.waitFor('address', () => readServerUrl(path.join(folder, 'runtime')));
    await program.waitFor('answer', () => isResponding(`${url}api/status`));
    return new JupyterServer(program, folder, url);
  }

  /** Returns the URL of a page such as `lab`, with the login token. */
  pageUrl(name: string): string {
    return `${this.url}${name}?token=${TOKEN}`;
  }

  /** Writes a file into the server's root folder or a subfolder. */
  write(name: string, text: string): void {
    const file = this.pathOf(name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  /** Returns the path of a file in the server's root folder. */
  pathOf(name: string): string {
    return path.join(this.folder, 'root', name);
  }

  /** Changes settings of the extension, for pages that are opened afterwards. */
  async setSettings(settings: Record<string, unknown>): Promise<void> {
    const response = await fetch(`${this.url}lab/api/settings/gpumon:plugin`, {
      method: 'PUT',
      headers: { Authorization: `token ${TOKEN}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ raw: JSON.stringify(settings) }),
    });
    if (!response.ok) {
      throw new Error(`settings: ${response.status} ${await response.text()}`);
    }
  }

  /** Sends a request to the Jupyter REST API and returns the response. */
  async requestApi<T>(method: string, where: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.url}api/${where}`, {
      method,
      headers: { Authorization: `token ${TOKEN}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    // Jupyter ends a session automatically after its kernel has ended, so the session may already
    // be gone.
    const isGone = method === 'DELETE' && response.status === 404;
    if (!response.ok && !isGone) {
      throw new Error(`${method} ${where}: ${response.status} ${await response.text()}`);
    }
    return (response.status === 204 ? null : await response.json()) as T;
  }

  /** Adds a kernel with its command and environment variables. */
  addKernel(spec: KernelSpec, argv: readonly string[], env: Record<string, string>): void {
    const folder = path.join(this.folder, 'data/kernels', spec.name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, 'kernel.json'), JSON.stringify({ ...spec, argv, env }));
  }

  /**
   * Starts the kernel of a notebook or console, as JupyterLab does when it opens the file. Returns
   * the session.
   */
  async startKernel(
    notebook: string,
    kernel = 'python3',
    type = 'notebook',
  ): Promise<KernelSession> {
    const session = await this.requestApi<{ id: string; kernel: { id: string } }>(
      'POST',
      'sessions',
      {
        path: notebook,
        name: notebook,
        type,
        kernel: { name: kernel },
      },
    );
    const file = `kernel-${session.kernel.id}.json`;
    const pid = await this.program.waitFor('kernel', () =>
      findPidByArgument(this.program.pid, file),
    );
    return { id: session.id, kernelId: session.kernel.id, pid };
  }

  /**
   * Resets the server to its initial state, and replaces its gpumon with a new one without history.
   */
  async reset(): Promise<void> {
    for (const { id } of await this.requestApi<{ id: string }[]>('GET', 'sessions')) {
      await this.requestApi('DELETE', `sessions/${id}`);
    }
    for (const { id } of await this.requestApi<{ id: string }[]>('GET', 'kernels')) {
      await this.requestApi('DELETE', `kernels/${id}`);
    }
    for (const name of ['root', 'workspaces']) {
      rmSync(path.join(this.folder, name), { recursive: true, force: true });
    }
    mkdirSync(path.join(this.folder, 'root'));
    await this.setSettings({});
    await this.restartWithScenario(ONE_GPU);
  }

  /** Restarts gpumon. If the server was created by `startScripted`, gpumon reads `scenario`. */
  async restartWithScenario(scenario: string): Promise<void> {
    this.replaceScenario(scenario);
    const before = this.gpumonPids;
    before.forEach((pid) => process.kill(pid, 'SIGKILL'));
    await this.program.waitFor('end of gpumon', () => (before.some(isRunning) ? null : true));
    await this.program.waitFor('gpumon', () => isResponding(`${this.url}gpumon/healthz`));
  }

  /** Replaces the scenario. The next collector reads the new one. */
  replaceScenario(scenario: string): void {
    writeFileSync(path.join(this.folder, SCENARIO), scenario);
  }

  get collector(): number | null {
    return findCollector(this.program.pid);
  }

  get gpumonPids(): number[] {
    return listGpumonPids(this.program.pid);
  }

  /** The output of the server, for the messages of failed tests. */
  get log(): string {
    return this.program.output;
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.program.stop(signal);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** Creates a folder with JupyterLab settings that prevent requests to other machines. */
export function createOfflineSettings(folder: string): string {
  const settings = path.join(folder, 'settings');
  const notification = path.join(
    settings,
    '@jupyterlab/apputils-extension/notification.jupyterlab-settings',
  );
  mkdirSync(path.dirname(notification), { recursive: true });
  writeFileSync(notification, JSON.stringify({ fetchNews: 'false', checkForUpdates: false }));
  return settings;
}

/**
 * Returns the server's address, or `null` until the server is ready. The address is in a file that
 * the server writes when it is ready.
 */
function readServerUrl(runtime: string): string | null {
  try {
    const name = readdirSync(runtime).find((file) => /^jpserver-\d+\.json$/.test(file));
    const info = JSON.parse(readFileSync(path.join(runtime, name ?? ''), 'utf8')) as {
      port: number;
    };
    return `http://127.0.0.1:${info.port}${BASE_URL}`;
  } catch {
    return null;
  }
}

async function isResponding(url: string): Promise<true | null> {
  try {
    const response = await fetch(url, { headers: { authorization: `token ${TOKEN}` } });
    return response.ok ? true : null;
  } catch {
    return null;
  }
}
