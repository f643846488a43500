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
