/** What the place around the view knows about notebooks and consoles, and can do with them. */

import type { PathOf } from '../model/holders';

export interface NotebookHost {
  pathOf: PathOf;
  open: (kernelId: string) => void;
  /** Offers what can be done with the kernel, below `anchor`. */
  openMenu: (kernelId: string, anchor: HTMLElement) => void;
}
