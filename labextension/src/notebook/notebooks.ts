/** The notebooks and consoles of this Jupyter server: their current paths, opening them, and actions on their kernels. */

import type { NotebookHost } from '@gpumon/page';
import { isConsolePath } from '@gpumon/page/cells';
import type { JupyterFrontEnd } from '@jupyterlab/application';
import { Dialog, showDialog, showErrorMessage } from '@jupyterlab/apputils';
import { KernelAPI, type Session } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';
import { Menu } from '@lumino/widgets';

import type { Connection } from '../server/connection';
import { describeHolding, newestSample } from './describe-holding';

const CommandIDs = {
  go: 'gpumon:go-to-notebook',
  interrupt: 'gpumon:interrupt-kernel',
  restart: 'gpumon:restart-kernel',
  shutDown: 'gpumon:shut-down-kernel',
} as const;

const ARGUMENTS = {
  type: 'object',
  // oxlint-disable-next-line texts/translated -- programs read it
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
  question: (path: string) => string;
  consequence: string;
  run: (session: Session.IModel) => Promise<void>;
}

export class LabNotebooks implements NotebookHost {
  private menu: Menu | null = null;

  constructor(
    private readonly app: JupyterFrontEnd,
    private readonly connection: Connection,
    private readonly trans: TranslationBundle,
  ) {
    this.addCommands();
  }

  readonly pathOf = (kernelId: string): string | null => {
    const session = this.sessionOf(kernelId);
    return session === null ? null : pathOf(session);
  };

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
    const path = this.pathOf(kernelId) ?? '';
    const run = (command: string) => () => {
      void app.commands.execute(command, { kernelId });
    };
    return [
      { label: trans.__('Go'), caption: trans.__('Go to %1', path), run: run(CommandIDs.go) },
      ...this.kernelActions().map(({ command, brief, question }) => ({
        label: brief,
        caption: question(path),
        run: run(command),
      })),
    ];
  }

  /** Describes what the kernel holds now, for questions about it. */
  async describeHolding(path: string, kernelId: string): Promise<string> {
    return describeHolding(this.trans, path, kernelId, newestSample(await this.connection.feed()));
  }

  /**
   * Returns the session of a kernel of this server. If a console shares the kernel of a notebook,
   * this is the notebook's. JupyterLab keeps the list up to date, including renames.
   */
  private sessionOf(kernelId: string): Session.IModel | null {
    const sessions = [...this.app.serviceManager.sessions.running()].filter(
      ({ kernel }) => kernel?.id === kernelId,
    );
    return sessions.find(({ path }) => !isConsolePath(path)) ?? sessions[0] ?? null;
  }

  private isConsole(args: { readonly kernelId?: unknown }): boolean {
    return isConsolePath(this.pathOf(kernelIdOf(args)) ?? '');
  }

  private addCommands(): void {
    const { app, trans } = this;
    app.commands.addCommand(CommandIDs.go, {
      label: (args) =>
        this.isConsole(args) ? trans.__('Go to Console') : trans.__('Go to Notebook'),
      describedBy: { args: ARGUMENTS },
      // Either command opens a tab if there is none.
      execute: (args) => this.goTo(kernelIdOf(args)),
    });
    for (const action of this.kernelActions()) {
      app.commands.addCommand(action.command, {
        label: action.label,
        describedBy: { args: ARGUMENTS },
        execute: (args) => this.confirmAndRun(kernelIdOf(args), action),
      });
    }
  }

  private async goTo(kernelId: string): Promise<void> {
    const { app, trans } = this;
    const path = this.pathOf(kernelId);
    if (path === null) {
      await showErrorMessage(
        trans.__('Cannot open the notebook'),
        trans.__('Its kernel has ended.'),
      );
      return;
    }
    try {
      const command = isConsolePath(path) ? 'console:open' : 'docmanager:open';
      await app.commands.execute(command, { path, activate: true });
    } catch (error) {
      await showErrorMessage(
        trans.__('Cannot open %1', path),
        error instanceof Error ? error : String(error),
      );
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
        question: (path) => trans.__('Interrupt the kernel of %1?', path),
        consequence: trans.__(
          'The running cell is stopped. Variables and the memory that they hold are kept.',
        ),
        run: (session) => KernelAPI.interruptKernel(kernelOf(session), settings),
      },
      {
        command: CommandIDs.restart,
        label: trans.__('Restart Kernel…'),
        brief: trans.__('Restart'),
        question: (path) => trans.__('Restart the kernel of %1?', path),
        consequence: trans.__('All variables are lost, and its GPU memory is freed.'),
        run: (session) => KernelAPI.restartKernel(kernelOf(session), settings),
      },
      {
        command: CommandIDs.shutDown,
        label: trans.__('Shut Down Kernel…'),
        brief: trans.__('Shut Down'),
        question: (path) => trans.__('Shut down the kernel of %1?', path),
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
    const path = pathOf(confirmed);
    const { button } = await showDialog({
      title: action.question(path),
      body: `${await this.describeHolding(path, kernelId)} ${action.consequence}`,
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
      await showErrorMessage(
        action.label.replace('…', ''),
        error instanceof Error ? error : String(error),
      );
    }
  }
}

function kernelIdOf(args: { readonly kernelId?: unknown }): string {
  return typeof args.kernelId === 'string' ? args.kernelId : '';
}

function pathOf(session: Session.IModel): string {
  return session.path || session.name;
}
