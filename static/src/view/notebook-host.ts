/** The interface to notebooks and consoles that the view's host, such as JupyterLab, provides. */

import type { PathOf } from '../model/holders';

export interface NotebookHost {
  pathOf: PathOf;
  open: (kernelId: string) => void;
  /** Offers what can be done with the kernel, below `anchor`. */
  openMenu: (kernelId: string, anchor: HTMLElement) => void;
}
