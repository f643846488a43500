/** What the place around the view knows about notebooks, and can do with them. */

export interface NotebookHost {
  /** What the notebook of this kernel is called now; `null` where the kernel is none of this place's. */
  nameOf: (kernelId: string) => string | null;
  open: (kernelId: string) => void;
  /** Offers what can be done with the kernel, below `anchor`. */
  openMenu: (kernelId: string, anchor: HTMLElement) => void;
}
