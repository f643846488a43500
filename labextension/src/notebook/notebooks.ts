import type { NotebookHost } from '@gpumon/page';
import {
  DASH,
  isConsolePath,
  formatMemorySize,
  computeKernelShare,
  type Sample,
} from '@gpumon/page/cells';
import type { Feed } from '@gpumon/page/feed';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { KernelAPI, type Session } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Menu } from '@lumino/widgets';

import type { Connection } from '../server/connection';

const GO_COMMAND = 'gpumon:go-to-notebook';

type Arguments = Readonly<Record<string, unknown>>;

export interface NotebookAction {
  /** A label short enough for the button of a notification. */
  label: string;
  caption: string;
  run: () => void;
}

/** An action on a kernel that the user must confirm. */
interface KernelAction {
  command: string;
  label: string;
  brief: string;
  question: (path: string) => string;
  consequence: string;
  run: (session: Session.IModel) => Promise<void>;
}

/** The notebooks and consoles of this Jupyter server: their paths, and actions on their kernels. */
export class LabNotebooks implements NotebookHost {
  private menu: Menu | null = null;

  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly connection: Connection,
    private readonly trans: TranslationBundle,
  ) {
    const isConsole = (args: Arguments): boolean =>
      isConsolePath(this.pathOf(kernelIdOf(args)) ?? '');
    const description = trans.__('The ID of the kernel');
    const properties = { kernelId: { type: 'string', description } } as const;
    const describedBy = { args: { type: 'object', properties, required: ['kernelId'] } } as const;
    app.commands.addCommand(GO_COMMAND, {
      label: (args) => (isConsole(args) ? trans.__('Go to Console') : trans.__('Go to Notebook')),
      describedBy,
      execute: (args) => this.goToNotebook(kernelIdOf(args)),
    });
    for (const action of this.kernelActions()) {
      app.commands.addCommand(action.command, {
        label: action.label,
        describedBy,
        execute: (args) => this.confirmAndRun(kernelIdOf(args), action),
      });
    }
  }

  readonly pathOf = (kernelId: string): string | null => {
    const session = this.sessionOf(kernelId);
    return session === null ? null : session.path || session.name;
  };

  open(kernelId: string): void {
    void this.app.commands.execute(GO_COMMAND, { kernelId });
  }

  openMenu(kernelId: string, anchor: HTMLElement): void {
    this.menu?.dispose();
    const menu = new Menu({ commands: this.app.commands });
    this.menu = menu;
    const args = { kernelId };
    menu.addItem({ command: GO_COMMAND, args });
    menu.addItem({ type: 'separator' });
    this.kernelActions().forEach(({ command }) => menu.addItem({ command, args }));
    const { left, bottom } = anchor.getBoundingClientRect();
    menu.open(left, bottom);
  }

  /**
   * Returns the actions on a kernel's notebook. Actions that change the kernel ask for
   * confirmation.
   */
  actions(kernelId: string): NotebookAction[] {
    const { app, trans } = this;
    const path = this.pathOf(kernelId) ?? '';
    const run = (command: string) => () => void app.commands.execute(command, { kernelId });
    return [
      { label: trans.__('Go'), caption: trans.__('Go to %1', path), run: run(GO_COMMAND) },
      ...this.kernelActions().map(({ command, brief, question }) => ({
        label: brief,
        caption: question(path),
        run: run(command),
      })),
    ];
  }

  /** Describes the GPU memory that the kernel currently uses. */
  async describeKernelMemory(path: string, kernelId: string): Promise<string> {
    return describeKernelMemory(
      this.trans,
      path,
      kernelId,
      newestSample(await this.connection.feed()),
    );
  }

  /**
   * Returns the session of a kernel. If a notebook and a console share the kernel, returns the
   * notebook's session.
   */
  private sessionOf(kernelId: string): Session.IModel | null {
    const sessions = [...this.app.serviceManager.sessions.running()].filter(
      ({ kernel }) => kernel?.id === kernelId,
    );
    return sessions.find(({ path }) => !isConsolePath(path)) ?? sessions[0] ?? null;
  }

  private async goToNotebook(kernelId: string): Promise<void> {
    const { app, trans } = this;
    const path = this.pathOf(kernelId);
    if (path === null) {
      const title = trans.__('Cannot open the notebook');
      await showErrorMessage(title, trans.__('Its kernel has ended.'));
      return;
    }
    // If the path is not open in a tab, both commands open a tab.
    const command = isConsolePath(path) ? 'console:open' : 'docmanager:open';
    const opened = app.commands.execute(command, { path, activate: true });
    await catchAndShowError(opened, trans.__('Cannot open %1', path));
  }

  private kernelActions(): KernelAction[] {
    const { trans } = this;
    const { serverSettings, sessions } = this.app.serviceManager;
    const idOf = ({ kernel }: Session.IModel): string => kernel?.id ?? '';
    const consequence = trans.__('All variables are lost, and its GPU memory is freed.');
    return [
      {
        command: 'gpumon:interrupt-kernel',
        label: trans.__('Interrupt Kernel…'),
        brief: trans.__('Interrupt'),
        question: (path) => trans.__('Interrupt the kernel of %1?', path),
        consequence: trans.__(
          'The running cell is stopped. All variables are kept, including their GPU memory.',
        ),
        run: (session) => KernelAPI.interruptKernel(idOf(session), serverSettings),
      },
      {
        command: 'gpumon:restart-kernel',
        label: trans.__('Restart Kernel…'),
        brief: trans.__('Restart'),
        question: (path) => trans.__('Restart the kernel of %1?', path),
        consequence,
        run: (session) => KernelAPI.restartKernel(idOf(session), serverSettings),
      },
      {
        command: 'gpumon:shut-down-kernel',
        label: trans.__('Shut Down Kernel…'),
        brief: trans.__('Shut Down'),
        question: (path) => trans.__('Shut down the kernel of %1?', path),
        consequence,
        run: (session) => sessions.shutdown(session.id),
      },
    ];
  }

  private async confirmAndRun(
    kernelId: string,
    { label, question, consequence, run }: KernelAction,
  ): Promise<void> {
    const path = this.pathOf(kernelId);
    if (path === null) {
      return;
    }
    const verb = label.replace('…', '');
    const { button } = await showDialog({
      title: question(path),
      body: `${await this.describeKernelMemory(path, kernelId)} ${consequence}`,
      buttons: [
        Dialog.cancelButton({ label: this.trans.__('Cancel') }),
        Dialog.warnButton({ label: verb }),
      ],
      defaultButton: 0,
    });
    // The kernel may have ended while the dialog was open.
    const session = this.sessionOf(kernelId);
    if (button.accept && session !== null) {
      await catchAndShowError(run(session), verb);
    }
  }
}

/** Returns the newest sample, or `null` while the connection is not open. */
export function newestSample({ store }: Feed): Sample | null {
  return store.phase.phase === 'open' ? store.sample : null;
}

/** Returns a sentence with a kernel's path, GPUs and GPU memory. */
export function describeKernelMemory(
  trans: TranslationBundle,
  path: string,
  kernelId: string,
  sample: Sample | null,
): string {
  if (sample === null) {
    return trans.__('The GPU memory of %1 is unknown.', path);
  }
  const { gpus, bytes } = computeKernelShare(sample, kernelId);
  const memory = bytes === null ? DASH : formatMemorySize(bytes);
  return gpus.length === 0
    ? trans.__('%1 holds no GPU memory.', path)
    : trans.__('%1 holds %2 of GPU %3.', path, memory, gpus.join(', '));
}

async function catchAndShowError(done: Promise<unknown>, title: string): Promise<void> {
  try {
    await done;
  } catch (error) {
    await showErrorMessage(title, error instanceof Error ? error : String(error));
  }
}

function kernelIdOf({ kernelId }: Arguments): string {
  return typeof kernelId === 'string' ? kernelId : '';
}
