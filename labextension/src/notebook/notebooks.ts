/** The notebooks of this Jupyter server: their current names, opening them, and actions on their kernels. */

import type { NotebookHost } from '@gpumon/page';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { PathExt } from '@jupyterlab/coreutils';
import { KernelAPI, type Session } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Menu } from '@lumino/widgets';

const CommandIDs = {
  go: 'gpumon:go-to-notebook',
  interrupt: 'gpumon:interrupt-kernel',
  restart: 'gpumon:restart-kernel',
  shutDown: 'gpumon:shut-down-kernel',
} as const;

const ARGUMENTS = {
  type: 'object',
  properties: { kernelId: { type: 'string', description: "Jupyter's id of the kernel" } },
  required: ['kernelId'],
} as const;

export interface NotebookAction {
  /** As short as the buttons of a notification have room for. */
  label: string;
  caption: string;
  run: () => void;
}

/** What is done to a kernel after confirmation. */
interface KernelAction {
  command: string;
  label: string;
  brief: string;
  question: (name: string) => string;
  consequence: string;
  run: (session: Session.IModel) => Promise<void>;
}

export class LabNotebooks implements NotebookHost {
  private menu: Menu | null = null;

  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly trans: TranslationBundle,
  ) {
    this.addCommands();
  }

  nameOf(kernelId: string): string | null {
    const session = this.sessionOf(kernelId);
    return session === null ? null : nameOf(session);
  }

  open(kernelId: string): void {
    void this.app.commands.execute(CommandIDs.go, { kernelId });
  }

  openMenu(kernelId: string, anchor: HTMLElement): void {
    this.menu?.dispose();
    const menu = new Menu({ commands: this.app.commands });
    this.menu = menu;
    menu.addItem({ command: CommandIDs.go, args: { kernelId } });
    menu.addItem({ type: 'separator' });
    for (const command of [CommandIDs.interrupt, CommandIDs.restart, CommandIDs.shutDown]) {
      menu.addItem({ command, args: { kernelId } });
    }
    const { left, bottom } = anchor.getBoundingClientRect();
    menu.open(left, bottom);
  }

  /** What can be done with the notebook of this kernel; whatever changes its kernel asks first. */
  actions(kernelId: string): NotebookAction[] {
    const { app, trans } = this;
    const name = this.nameOf(kernelId) ?? '';
    const run = (command: string) => () => {
      void app.commands.execute(command, { kernelId });
    };
    return [
      { label: trans.__('Go'), caption: trans.__('Go to %1', name), run: run(CommandIDs.go) },
      ...this.kernelActions().map(({ command, brief, question }) => ({
        label: brief,
        caption: question(name),
        run: run(command),
      })),
    ];
  }

  /** The session of this kernel, if it is one of this server's. JupyterLab keeps the list up to date, also of renames. */
  private sessionOf(kernelId: string): Session.IModel | null {
    for (const session of this.app.serviceManager.sessions.running()) {
      if (session.kernel?.id === kernelId) {
        return session;
      }
    }
    return null;
  }

  private addCommands(): void {
    const { app, trans } = this;
    app.commands.addCommand(CommandIDs.go, {
      label: trans.__('Go to Notebook'),
      describedBy: { args: ARGUMENTS },
      execute: async (args) => {
        const session = this.sessionOf(kernelIdOf(args));
        if (session !== null) {
          await app.commands.execute('docmanager:open', { path: session.path });
        }
      },
    });
    for (const action of this.kernelActions()) {
      app.commands.addCommand(action.command, {
        label: action.label,
        describedBy: { args: ARGUMENTS },
        execute: (args) => this.confirmAndRun(kernelIdOf(args), action),
      });
    }
  }

  private kernelActions(): KernelAction[] {
    const { app, trans } = this;
    const settings = app.serviceManager.serverSettings;
    const kernelOf = (session: Session.IModel): string => session.kernel?.id ?? '';
    return [
      {
        command: CommandIDs.interrupt,
        label: trans.__('Interrupt Kernel…'),
        brief: trans.__('Interrupt'),
        question: (name) => trans.__('Interrupt the kernel of %1?', name),
        consequence: trans.__('The running cell is stopped. Variables and the memory that they hold are kept.'),
        run: (session) => KernelAPI.interruptKernel(kernelOf(session), settings),
      },
      {
        command: CommandIDs.restart,
        label: trans.__('Restart Kernel…'),
        brief: trans.__('Restart'),
        question: (name) => trans.__('Restart the kernel of %1?', name),
        consequence: trans.__('All variables are lost, and its GPU memory is freed.'),
        run: (session) => KernelAPI.restartKernel(kernelOf(session), settings),
      },
      {
        command: CommandIDs.shutDown,
        label: trans.__('Shut Down Kernel…'),
        brief: trans.__('Shut Down'),
        question: (name) => trans.__('Shut down the kernel of %1?', name),
        consequence: trans.__('All variables are lost, and its GPU memory is freed.'),
        run: (session) => app.serviceManager.sessions.shutdown(session.id),
      },
    ];
  }

  private async confirmAndRun(kernelId: string, action: KernelAction): Promise<void> {
    const { trans } = this;
    const confirmed = this.sessionOf(kernelId);
    if (confirmed === null) {
      return;
    }
    const { button } = await showDialog({
      title: action.question(nameOf(confirmed)),
      body: action.consequence,
      buttons: [
        Dialog.cancelButton({ label: trans.__('Cancel') }),
        Dialog.warnButton({ label: action.label.replace('…', '') }),
      ],
      defaultButton: 0,
    });
    // The notebook may have another kernel by now, which nobody has asked about.
    const session = this.sessionOf(kernelId);
    if (!button.accept || session === null) {
      return;
    }
    try {
      await action.run(session);
    } catch (error) {
      await showErrorMessage(action.label.replace('…', ''), error instanceof Error ? error : String(error));
    }
  }
}

function kernelIdOf(args: { readonly kernelId?: unknown }): string {
  return typeof args.kernelId === 'string' ? args.kernelId : '';
}

function nameOf(session: Session.IModel): string {
  return PathExt.basename(session.path) || session.name;
}
