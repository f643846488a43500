/**
 * The interface to notebooks and consoles that the embedding application provides, such as
 * JupyterLab.
 */

import type { PathOf } from '../model/holders';

export interface NotebookHost {
  pathOf: PathOf;
  open: (kernelId: string) => void;
  /** Opens a menu of actions on a kernel below `anchor`. */
  openMenu: (kernelId: string, anchor: HTMLElement) => void;
}
