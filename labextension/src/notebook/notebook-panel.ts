/**
 * The parts of JupyterLab's notebook panels that are used here. Importing their package for a few
 * types would bundle the whole notebook.
 */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { Toolbar } from '@jupyterlab/ui-components';
import type { ISignal } from '@lumino/signaling';
import type { Widget } from '@lumino/widgets';

export interface NotebookCell extends Widget {
  readonly model: CellModel;
}

/** A cell in the shared model of a notebook. */
export interface CellModel {
  readonly id: string;
  /** `code`, `markdown` or `raw`. */
  readonly type: string;
  /** The execution count of the last run; `null` before the first run and while the cell runs. */
  readonly executionCount: number | null;
  readonly sharedModel: { getSource: () => string };
  getMetadata: (key: string) => unknown;
  setMetadata: (key: string, value: unknown) => void;
  deleteMetadata: (key: string) => void;
}

export interface NotebookPanel extends Widget {
  readonly context: {
    /** Whether the notebook file has been loaded. */
    readonly isReady: boolean;
    readonly ready: Promise<void>;
    readonly model: { readonly contentChanged: ISignal<unknown, void> };
  };
  readonly sessionContext: ISessionContext;
  readonly toolbar: Toolbar;
  readonly content: Widget & { readonly widgets: readonly NotebookCell[] };
}

/**
 * Adds a widget next to the kernel name, which the toolbars of JupyterLab and Notebook 7 both have.
 */
export function addToToolbar({ toolbar }: NotebookPanel, name: string, widget: Widget): void {
  if (!toolbar.insertBefore('kernelName', name, widget)) {
    toolbar.addItem(name, widget);
  }
}
