/** Elements of one kind below the cells of a notebook, at most one per cell. */

import type { NotebookPanel } from './notebook-panel';

export class CellAttachments<View extends { element: HTMLElement }> {
  private readonly views = new Map<string, View>();

  /**
   * New elements are inserted before the element that matches the selector `before`, if the cell
   * has one.
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
    const node = this.panel.content.widgets.find((one) => one.model.id === cellId)?.node;
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
