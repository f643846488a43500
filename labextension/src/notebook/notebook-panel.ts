/**
 * The parts of JupyterLab's notebook panels that are used here, and functions that add elements to
 * the panels. JupyterLab's notebook package is not imported: only a few of its types are needed,
 * but the build would bundle the whole package.
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

/** Returns the cell with this ID, or `undefined` if the notebook has no such cell. */
export function findCell({ content }: NotebookPanel, cellId: string): NotebookCell | undefined {
  return content.widgets.find(({ model }) => model.id === cellId);
}

/** Elements of one kind below the cells of a notebook, at most one per cell. */
export class CellAttachments<View extends { element: HTMLElement }> {
  private readonly views = new Map<string, View>();

  /**
   * If the cell has an element that matches the selector `before`, new elements are inserted before
   * that element.
   */
  constructor(
    private readonly panel: NotebookPanel,
    private readonly before: string | null = null,
  ) {}

  /**
   * Returns the view below this cell, and creates it if needed. Returns `null` if the notebook has
   * no such cell.
   */
  attach(cellId: string, create: () => View): View | null {
    const node = findCell(this.panel, cellId)?.node;
    if (node === undefined) {
      return null;
    }
    const view = this.views.get(cellId) ?? create();
    this.views.set(cellId, view);
    if (view.element.parentElement !== node) {
      node.insertBefore(
        view.element,
        this.before === null ? null : node.querySelector(this.before),
      );
    }
    return view;
  }

  remove(cellId: string): void {
    this.views.get(cellId)?.element.remove();
    this.views.delete(cellId);
  }

  dispose(): void {
    for (const cellId of [...this.views.keys()]) {
      this.remove(cellId);
    }
  }
}
