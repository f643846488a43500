// @vitest-environment jsdom
import { beforeEach, expect, it, vi } from 'vitest';

vi.mock('@jupyterlab/apputils', () => ({
  Dialog: { cancelButton: vi.fn(), warnButton: vi.fn() },
  showDialog: vi.fn(() => Promise.resolve({ button: { accept: false } })),
  showErrorMessage: vi.fn(() => Promise.resolve()),
}));
vi.mock('@jupyterlab/services', () => ({ KernelAPI: {} }));
vi.mock('@jupyterlab/ui-components', () => ({ consoleIcon: 'console', notebookIcon: 'notebook' }));
vi.mock('@lumino/widgets', () => ({ Menu: vi.fn(), Widget: vi.fn() }));

import type { Feed } from '@gpumon/page/feed';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { nullTranslator } from '@jupyterlab/translation';

import { makeGpu, NOW, makeProcess, makeSample } from '../../../static/src/testing/frames';
import type { Connection } from '../server/connection';
import { GpuMemoryList } from './gpu-use';
import { LabNotebooks } from './notebooks';

const CONSOLE = 'first/console-1-0d7c4dcc-22a5-44e5-a5b3-b2a0f5f3ae9c';
const QUESTIONS = ['gpumon:interrupt-kernel', 'gpumon:restart-kernel', 'gpumon:shut-down-kernel'];

interface Command {
  label: string | ((args: object) => string);
  execute: (args: object) => Promise<void>;
}

let sessions: { id: string; path: string; name: string; kernel: { id: string } }[];
let commands: Map<string, Command>;
/** Records the JupyterLab commands that are executed. */
const executed = vi.fn<(id: string, args: object) => Promise<void>>();
let feed: Feed;
let app: JupyterFrontEnd;
let notebooks: LabNotebooks;

function createSession(path: string, kernelId: string): (typeof sessions)[number] {
  return { id: `of ${path}`, path, name: '', kernel: { id: kernelId } };
}

function createConnection(): Connection {
  const made: unknown = { feed: () => Promise.resolve(feed) };
  return made as Connection;
}

function runCommand(id: string, kernelId: string): Promise<void> {
  return commands.get(id)?.execute({ kernelId }) ?? Promise.reject(new Error(`no command ${id}`));
}

beforeEach(() => {
  vi.clearAllMocks();
  executed.mockResolvedValue();
  sessions = [
    createSession('first/train.ipynb', 'k1'),
    createSession('second/train.ipynb', 'k2'),
    createSession(CONSOLE, 'k3'),
  ];
  commands = new Map();
  const owned = (kernel_id: string, pid: number, memory_bytes: number) =>
    makeProcess(pid, {
      memory_bytes,
      owner: { parents: [], notebook: { kernel_id, path: 'x.ipynb', kernel_pid: pid } },
    });
  const gpus = [
    makeGpu(0, { processes: [owned('k1', 7, 8 * 2 ** 30), owned('k2', 8, 2 ** 30)] }),
    makeGpu(1, { processes: [owned('k1', 7, 8 * 2 ** 30)] }),
  ];
  feed = { store: { phase: { phase: 'open' }, sample: makeSample(NOW, gpus) } } as unknown as Feed;
  app = {
    commands: {
      addCommand: (id: string, command: Command) => commands.set(id, command),
      execute: (id: string, args: { kernelId: string }) =>
        commands.get(id)?.execute(args) ?? executed(id, args),
    },
    serviceManager: { sessions: { running: () => sessions.values() } },
  } as unknown as JupyterFrontEnd;
  notebooks = new LabNotebooks(app, createConnection(), nullTranslator.load(''));
});

it.each(QUESTIONS)('confirmation of %s names path, GPUs and memory', async (id) => {
  await runCommand(id, 'k1');
  const { title, body } = vi.mocked(showDialog).mock.calls[0]?.[0] ?? {};
  expect(title).toMatch(/ the kernel of first\/train\.ipynb\?$/);
  expect((body as string).replaceAll('\u00a0', ' ')).toMatch(
    /^first\/train\.ipynb holds 16\.0 GiB of GPU 0, 1\. /,
  );
});

it('confirmation mentions unknown or unused GPU memory', async () => {
  await runCommand('gpumon:restart-kernel', 'k3');
  expect(vi.mocked(showDialog).mock.calls[0]?.[0]?.body).toContain(
    `${CONSOLE} holds no GPU memory.`,
  );
  feed.store.phase = { phase: 'waiting', attempt: 1, retry_at_ms: 0 };
  await runCommand('gpumon:restart-kernel', 'k1');
  expect(vi.mocked(showDialog).mock.calls[1]?.[0]?.body).toContain(
    'The GPU memory of first/train.ipynb is unknown.',
  );
});

it('JupyterLab opens notebooks and consoles', async () => {
  await runCommand('gpumon:go-to-notebook', 'k2');
  expect(executed).toHaveBeenLastCalledWith('docmanager:open', {
    path: 'second/train.ipynb',
    activate: true,
  });
  await runCommand('gpumon:go-to-notebook', 'k3');
  expect(executed).toHaveBeenLastCalledWith('console:open', { path: CONSOLE, activate: true });
  const label = commands.get('gpumon:go-to-notebook')?.label;
  expect(
    ['k2', 'k3'].map((kernelId) => typeof label === 'function' && label({ kernelId })),
  ).toEqual(['Go to Notebook', 'Go to Console']);
});

it('kernel shared with console belongs to the notebook', () => {
  sessions = [createSession(CONSOLE, 'k1'), createSession('first/train.ipynb', 'k1')];
  expect(notebooks.pathOf('k1')).toBe('first/train.ipynb');
});

it('failure to open a notebook is explained', async () => {
  executed.mockRejectedValue(new Error('Not Found'));
  await runCommand('gpumon:go-to-notebook', 'k1');
  expect(showErrorMessage).toHaveBeenLastCalledWith(
    'Cannot open first/train.ipynb',
    new Error('Not Found'),
  );
  await runCommand('gpumon:go-to-notebook', 'gone');
  expect(showErrorMessage).toHaveBeenLastCalledWith(
    'Cannot open the notebook',
    'Its kernel has ended.',
  );
});

it('shutdown confirmation lists notebooks with their folders', async () => {
  const sideBar = document.createElement('div');
  sideBar.className = 'jp-RunningSessions';
  document.body.replaceChildren(sideBar);
  // jsdom computes no layout. Without this replacement, every element would count as invisible.
  vi.spyOn(Element.prototype, 'getClientRects').mockReturnValue([{}] as unknown as DOMRectList);
  let update = (): void => undefined;
  Object.assign(feed, {
    subscribe: (listener: () => void) => {
      update = listener;
      return { update: vi.fn() };
    },
  });
  const trans = nullTranslator.load('');
  const list = new GpuMemoryList({
    app,
    connection: createConnection(),
    notebooks: () => Promise.resolve(notebooks),
    trans,
  });
  list.refreshRunning();
  await vi.waitFor(() => {
    update();
    expect(list.running()).toHaveLength(2);
  });
  expect(list.running().map((item) => item.label())).toEqual([
    'first/train.ipynb',
    'second/train.ipynb',
  ]);
  expect(list.shutdownAllConfirmationText.replaceAll('\u00a0', ' ')).toBe(
    'Shut down these kernels? first/train.ipynb holds 16.0 GiB of GPU 0, 1. second/train.ipynb holds 1.00 GiB of GPU 0. ' +
      'All variables are lost.',
  );
  list.running()[1]?.open?.();
  await vi.waitFor(() =>
    expect(executed).toHaveBeenLastCalledWith('docmanager:open', {
      path: 'second/train.ipynb',
      activate: true,
    }),
  );
});
