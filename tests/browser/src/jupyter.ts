/** A JupyterLab server of its own, behind a prefix as a hub has it. */

import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';

import { environment, JUPYTER_LAB, newFolder, overFake } from './machine';
import type { KernelSpec } from './notebook-file';
import { collectorBelow, gpumonPidsBelow, isRunning, pidBelow } from './processes';
import { Program } from './program';

const TOKEN = 'only-for-this-test';
const SCENARIO = 'scenario.toml';
const ONE_GPU = 'gpus = 1\n';
const BASE_URL = '/user/me/';

/** What may be another than usual. */
export interface ServerOptions {
  /** The program, of another virtual environment. */
  program?: string;
  /** More for its command line. */
  arguments?: readonly string[];
}

/** A notebook with a kernel. */
export interface KernelSession {
  id: string;
  kernelId: string;
  /** Of the kernel's process. */
  pid: number;
}

export class JupyterServer {
  private constructor(
    private readonly program: Program,
    private readonly folder: string,
    /** Its address, with the prefix and a closing slash. */
    readonly url: string,
  ) {}

  /** Starts a server whose gpumon reads the scenario of `script`. */
  static startScripted(): Promise<JupyterServer> {
    const folder = newFolder();
    writeFileSync(path.join(folder, SCENARIO), ONE_GPU);
    return JupyterServer.start(overFake(path.join(folder, SCENARIO)), {}, folder);
  }

  /** Starts a server whose gpumon has the environment variables `env`. */
  static async start(
    env: Record<string, string>,
    options: ServerOptions = {},
    folder = newFolder(),
  ): Promise<JupyterServer> {
    const settings = quietSettings(folder);
    mkdirSync(path.join(folder, 'root'));
    const program = new Program(
      options.program ?? JUPYTER_LAB,
      [
        '--no-browser',
        // Without it, an interrupted test run would leave the server asking whether it may end.
        '-y',
        '--allow-root',
        '--ip=127.0.0.1',
        '--port=0',
        `--ServerApp.base_url=${BASE_URL}`,
        `--ServerApp.root_dir=${path.join(folder, 'root')}`,
        ...(options.arguments ?? []),
      ],
      environment({
        JUPYTER_TOKEN: TOKEN,
        JUPYTER_CONFIG_DIR: path.join(folder, 'config'),
        JUPYTER_DATA_DIR: path.join(folder, 'data'),
        JUPYTER_RUNTIME_DIR: path.join(folder, 'runtime'),
        JUPYTERLAB_SETTINGS_DIR: settings,
        JUPYTERLAB_WORKSPACES_DIR: path.join(folder, 'workspaces'),
        // Its gpumon keeps a history of its own.
        XDG_STATE_HOME: path.join(folder, 'state'),
        ...env,
      }),
    );
    const url = await program.until('address', () => addressIn(path.join(folder, 'runtime')));
    await program.until('answer', () => answers(`${url}api/status`));
    return new JupyterServer(program, folder, url);
  }

  /** The address of one of its pages, as `lab`, with the login. */
  page(name: string): string {
    return `${this.url}${name}?token=${TOKEN}`;
  }

  /** Puts a file into the folder that the server shows, or into one below it. */
  write(name: string, text: string): void {
    const file = this.path(name);
    mkdirSync(path.dirname(file), { recursive: true });
    writeFileSync(file, text);
  }

  /** The path of a file in the folder that the server shows. */
  path(name: string): string {
    return path.join(this.folder, 'root', name);
  }

  /** Chooses settings of the extension, for pages that are opened after it. */
  async choose(settings: Record<string, unknown>): Promise<void> {
    const response = await fetch(`${this.url}lab/api/settings/gpumon:plugin`, {
      method: 'PUT',
      headers: { Authorization: `token ${TOKEN}`, 'Content-Type': 'application/json' },
      body: JSON.stringify({ raw: JSON.stringify(settings) }),
    });
    if (!response.ok) {
      throw new Error(`settings: ${response.status} ${await response.text()}`);
    }
  }

  /** Asks Jupyter's own REST interface, and gives its answer. */
  async api<T>(method: string, where: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.url}api/${where}`, {
      method,
      headers: { Authorization: `token ${TOKEN}`, 'Content-Type': 'application/json' },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    // A session ends by itself after its kernel.
    const isGone = method === 'DELETE' && response.status === 404;
    if (!response.ok && !isGone) {
      throw new Error(`${method} ${where}: ${response.status} ${await response.text()}`);
    }
    return (response.status === 204 ? null : await response.json()) as T;
  }

  /** Makes another kind of kernel known: what runs it, and with what in its environment. */
  addKernel(spec: KernelSpec, argv: readonly string[], env: Record<string, string>): void {
    const folder = path.join(this.folder, 'data/kernels', spec.name);
    mkdirSync(folder, { recursive: true });
    writeFileSync(path.join(folder, 'kernel.json'), JSON.stringify({ ...spec, argv, env }));
  }

  /** Starts the kernel of a notebook or console, as opening it does, and returns the session. */
  async startKernel(
    notebook: string,
    kernel = 'python3',
    type = 'notebook',
  ): Promise<KernelSession> {
    const session = await this.api<{ id: string; kernel: { id: string } }>('POST', 'sessions', {
      path: notebook,
      name: notebook,
      type,
      kernel: { name: kernel },
    });
    const file = `kernel-${session.kernel.id}.json`;
    const pid = await this.program.until('kernel', () => pidBelow(this.program.pid, file));
    return { id: session.id, kernelId: session.kernel.id, pid };
  }

  /** Makes it as it was when it started, with a gpumon that remembers nothing. */
  async reset(): Promise<void> {
    for (const { id } of await this.api<{ id: string }[]>('GET', 'sessions')) {
      await this.api('DELETE', `sessions/${id}`);
    }
    for (const { id } of await this.api<{ id: string }[]>('GET', 'kernels')) {
      await this.api('DELETE', `kernels/${id}`);
    }
    for (const name of ['root', 'workspaces']) {
      rmSync(path.join(this.folder, name), { recursive: true, force: true });
    }
    mkdirSync(path.join(this.folder, 'root'));
    await this.choose({});
    await this.script(ONE_GPU);
  }

  /** Has a new gpumon run, which reads this scenario where the server was started for that. */
  async script(scenario: string): Promise<void> {
    this.rewrite(scenario);
    const before = this.gpumons;
    before.forEach((pid) => process.kill(pid, 'SIGKILL'));
    await this.program.until('end of gpumon', () => (before.some(isRunning) ? null : true));
    await this.program.until('gpumon', () => answers(`${this.url}gpumon/healthz`));
  }

  /** Leaves another scenario for a collector that starts by itself. */
  rewrite(scenario: string): void {
    writeFileSync(path.join(this.folder, SCENARIO), scenario);
  }

  get collector(): number | null {
    return collectorBelow(this.program.pid);
  }

  get gpumons(): number[] {
    return gpumonPidsBelow(this.program.pid);
  }

  /** What it has written, for the message of a failed test. */
  get log(): string {
    return this.program.output;
  }

  async stop(signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
    await this.program.stop(signal);
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/**
 * Makes a folder of settings of JupyterLab in this one: nothing that a test does may ask another
 * machine.
 */
export function quietSettings(folder: string): string {
  const settings = path.join(folder, 'settings');
  const notification = path.join(
    settings,
    '@jupyterlab/apputils-extension/notification.jupyterlab-settings',
  );
  mkdirSync(path.dirname(notification), { recursive: true });
  writeFileSync(notification, JSON.stringify({ fetchNews: 'false', checkForUpdates: false }));
  return settings;
}

/** The server tells its port in a file, once it listens. */
function addressIn(runtime: string): string | null {
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

async function answers(url: string): Promise<true | null> {
  try {
    const response = await fetch(url, { headers: { authorization: `token ${TOKEN}` } });
    return response.ok ? true : null;
  } catch {
    return null;
  }
}
