/** Which notebooks have lines below their cells: those that are open, while the setting says so. */

import type { IDisposable } from '@lumino/disposable';

import type { Connection } from './connection';
import type { NotebookPanel } from './notebook-panel';

export class CellLines {
  private enabled = false;
  /** Open notebooks, and what writes their lines; `null` where nothing does. */
  private readonly notebooks = new Map<NotebookPanel, IDisposable | null>();

  constructor(private readonly connection: Connection) {}

  /** A notebook has been opened. */
  add(panel: NotebookPanel): void {
    this.notebooks.set(panel, null);
    panel.disposed.connect(() => {
      this.notebooks.get(panel)?.dispose();
      this.notebooks.delete(panel);
    });
    // Without a kernel nothing runs, and nothing need be loaded.
    void panel.sessionContext.ready.then(() => this.attach(panel));
  }

  setEnabled(enabled: boolean): void {
    this.enabled = enabled;
    for (const [panel, lines] of this.notebooks) {
      if (!enabled) {
        lines?.dispose();
        this.notebooks.set(panel, null);
      } else if (panel.sessionContext.isReady) {
        void this.attach(panel);
      }
    }
  }

  private async attach(panel: NotebookPanel): Promise<void> {
    if (!this.wants(panel)) {
      return;
    }
    const [feed, { CellCosts }] = await Promise.all([this.connection.feed(), import('./cells')]);
    if (this.wants(panel)) {
      this.notebooks.set(panel, new CellCosts(panel, feed));
    }
  }

  private wants(panel: NotebookPanel): boolean {
    return this.enabled && this.notebooks.get(panel) === null;
  }
}
