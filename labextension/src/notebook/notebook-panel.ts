/** What is used of JupyterLab's notebook panels. Their package would bring the whole notebook along for a few types. */

import type { ISessionContext } from '@jupyterlab/apputils';
import type { Toolbar } from '@jupyterlab/ui-components';
import type { Widget } from '@lumino/widgets';

export interface NotebookCell extends Widget {
  readonly model: { readonly id: string };
}

export interface NotebookPanel extends Widget {
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
