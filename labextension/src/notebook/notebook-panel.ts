/**
 * What is used of JupyterLab's notebook panels. Their package would bring the whole notebook along
 * for a few types.
 */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { Toolbar } from '@jupyterlab/ui-components';
import type { ISignal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';

export interface NotebookCell extends Widget {
  readonly model: CellModel;
}

/** A cell, as all who work on the notebook share it. */
export interface CellModel {
  readonly id: string;
  /** `code`, `markdown` or `raw`. */
  readonly type: string;
  /** The execution count of the last run; `null` if there is none or while one runs. */
  readonly executionCount: number | null;
  readonly sharedModel: { getSource: () => string };
  getMetadata: (key: string) => unknown;
  setMetadata: (key: string, value: unknown) => void;
  deleteMetadata: (key: string) => void;
}

export interface NotebookPanel extends Widget {
  readonly context: {
    /** Whether the file has been read. */
    readonly isReady: boolean;
    readonly ready: Promise<void>;
    readonly model: { readonly contentChanged: ISignal<unknown, void> };
  };
  readonly sessionContext: ISessionContext;
  readonly toolbar: Toolbar;
  readonly content: Widget & { readonly widgets: readonly NotebookCell[] };
}

/** Puts a widget beside the kernel's name, which is there in JupyterLab and Notebook 7. */
export function addToToolbar({ toolbar }: NotebookPanel, name: string, widget: Widget): void {
  if (!toolbar.insertBefore('kernelName', name, widget)) {
    toolbar.addItem(name, widget);
  }
}
