/**
 * What notebooks say of the GPUs: lines below cells, a chip in the toolbar and the status bar, warnings about memory; and
 * the button that has their kernels use one.
 */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { ICommandPalette } from '@jupyterlab/apputils';
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { IStatusBar } from '@jupyterlab/statusbar';
import type { ITranslator, TranslationBundle } from '@jupyterlab/translation';
import type { IDisposable } from '@lumino/disposable';

import type { Connection } from '../server/connection';
import type { NotebookPanel } from './notebook-panel';
import type { LabNotebooks } from './notebooks';
import { PerNotebook } from './per-notebook';
import type { Settings } from '../settings';

const STATUS_ID = 'gpumon:notebook-use';
/** Behind the kernel's state. */
const STATUS_RANK = 10;

export interface InNotebooksOptions {
  app: JupyterFrontEnd;
  connection: Connection;
  notebooks: () => Promise<LabNotebooks>;
  trans: TranslationBundle;
  /** Notebook 7 has none. */
  statusBar: IStatusBar | null;
  palette: ICommandPalette | null;
  registry: ISettingRegistry | null;
  translator: ITranslator | null;
  showPanel: () => void;
}

type Part = 'cellLine' | 'notebookUse' | 'memoryWarnings' | 'accelerators';
const PARTS: readonly Part[] = ['cellLine', 'notebookUse', 'memoryWarnings', 'accelerators'];

export class InNotebooks {
  private readonly open = new Set<NotebookPanel>();
  /** By the setting that enables it; `cellLine` also measures what `storeCosts` stores. */
  private readonly parts: Record<Part, PerNotebook>;
  private settings: Settings | null = null;
  private memoryWatch: IDisposable | null = null;
  private statusItem: Pick<IDisposable, 'dispose'> | null = null;

  constructor(private readonly options: InNotebooksOptions) {
    const { connection, notebooks, trans, showPanel } = options;
    const cellLine = new PerNotebook(
      async (notebook) => {
        const { CellLines } = await import('./notebook-chunk');
        return new CellLines(notebook, {
          feed: () => connection.feed(),
          settings: () => this.settings,
        });
      },
      // What a notebook has stored is shown whether or not it gets a kernel.
      ({ context }) => context,
    );
    const notebookUse = new PerNotebook(async (notebook) => {
      const [feed, { addToolbarChip }] = await Promise.all([
        connection.feed(),
        import('./notebook-chunk'),
      ]);
      return addToolbarChip(notebook, feed, showPanel);
    });
    const memoryWarnings: PerNotebook = new PerNotebook(async (notebook) => {
      const [feed, own, { CellFailures, MemoryWatch }] = await Promise.all([
        connection.feed(),
        notebooks(),
        import('./memory-chunk'),
      ]);
      // One for all, also for kernels whose notebooks are closed; it may have been switched off meanwhile.
      if (memoryWarnings.isEnabled) {
        this.memoryWatch ??= new MemoryWatch(feed, own);
      }
      return new CellFailures(notebook, feed, own);
    });
    const accelerators = new PerNotebook(async (notebook) => {
      const [own, { AcceleratorButton }] = await Promise.all([
        notebooks(),
        import('./notebook-chunk'),
      ]);
      return new AcceleratorButton(notebook, own, trans);
    });
    this.parts = { cellLine, notebookUse, memoryWarnings, accelerators };
    const current = (): NotebookPanel | null =>
      [...this.open].find((notebook) => notebook === options.app.shell.currentWidget) ?? null;
    void import('./notebook-chunk').then(({ addCostCommands }) =>
      addCostCommands({ ...options, current }),
    );
  }

  apply(settings: Settings): void {
    if (this.settings?.cellLine !== settings.cellLine) {
      // What measures cells shows lines or shows none, from its beginning on.
      this.parts.cellLine.setEnabled(false);
    }
    this.settings = settings;
    const isEnabled = { ...settings, cellLine: settings.cellLine || settings.storeCosts };
    PARTS.forEach((part) => this.parts[part].setEnabled(isEnabled[part]));
    if (!settings.memoryWarnings) {
      this.memoryWatch?.dispose();
      this.memoryWatch = null;
    }
    if (settings.notebookUse) {
      void this.addStatusItem();
    } else {
      this.statusItem?.dispose();
      this.statusItem = null;
    }
  }

  add(notebook: NotebookPanel): void {
    this.open.add(notebook);
    notebook.disposed.connect(() => this.open.delete(notebook));
    PARTS.forEach((part) => this.parts[part].add(notebook));
    void this.addStatusItem();
  }

  private wantsStatusItem(): boolean {
    return this.statusItem === null && this.open.size > 0 && this.parts.notebookUse.isEnabled;
  }

  /** With the first notebook, since there is nothing to say before. */
  private async addStatusItem(): Promise<void> {
    const { app, connection, statusBar, showPanel } = this.options;
    if (statusBar === null || !this.wantsStatusItem()) {
      return;
    }
    const [feed, { StatusChip }] = await Promise.all([
      connection.feed(),
      import('./notebook-chunk'),
    ]);
    if (!this.wantsStatusItem()) {
      return;
    }
    const item = new StatusChip(app.shell, feed, this.open, showPanel);
    const registration = statusBar.registerStatusItem(STATUS_ID, {
      item,
      align: 'left',
      rank: STATUS_RANK,
    });
    this.statusItem = {
      dispose: () => {
        registration.dispose();
        item.dispose();
      },
    };
  }
}
