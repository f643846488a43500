/**
 * What notebooks say of the GPUs: lines below cells, a chip in the toolbar and the status bar, warnings about memory; and
 * the button that has their kernels use one.
 */

import type { JupyterFrontEnd } from '@jupyterlab/application';
import type { IStatusBar } from '@jupyterlab/statusbar';
import type { TranslationBundle } from '@jupyterlab/translation';
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
  showPanel: () => void;
}

type Part = 'cellLine' | 'notebookUse' | 'memoryWarnings' | 'accelerators';
const PARTS: readonly Part[] = ['cellLine', 'notebookUse', 'memoryWarnings', 'accelerators'];

export class InNotebooks {
  private readonly open = new Set<NotebookPanel>();
  /** By the setting that enables it. */
  private readonly parts: Record<Part, PerNotebook>;
  private memoryWatch: IDisposable | null = null;
  private statusItem: Pick<IDisposable, 'dispose'> | null = null;

  constructor(private readonly options: InNotebooksOptions) {
    const { connection, notebooks, trans, showPanel } = options;
    const cellLine = new PerNotebook(async (notebook) => {
      const [feed, { CellCosts }] = await Promise.all([connection.feed(), import('./notebook-chunk')]);
      return new CellCosts(notebook, feed);
    });
    const notebookUse = new PerNotebook(async (notebook) => {
      const [feed, { addToolbarChip }] = await Promise.all([connection.feed(), import('./notebook-chunk')]);
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
      const { AcceleratorButton } = await import('./notebook-chunk');
      return new AcceleratorButton(notebook, trans);
    });
    this.parts = { cellLine, notebookUse, memoryWarnings, accelerators };
  }

  apply(settings: Settings): void {
    PARTS.forEach((part) => this.parts[part].setEnabled(settings[part]));
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
    const [feed, { StatusChip }] = await Promise.all([connection.feed(), import('./notebook-chunk')]);
    if (!this.wantsStatusItem()) {
      return;
    }
    const item = new StatusChip(app.shell, feed, this.open, showPanel);
    const registration = statusBar.registerStatusItem(STATUS_ID, { item, align: 'left', rank: STATUS_RANK });
    this.statusItem = {
      dispose: () => {
        registration.dispose();
        item.dispose();
      },
    };
  }
}
