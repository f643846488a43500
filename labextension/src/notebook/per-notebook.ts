/** Something that every open notebook has, while a setting says so. */

import type { IDisposable } from '@lumino/disposable';

import type { NotebookPanel } from './notebook-panel';

interface Awaited {
  readonly isReady: boolean;
  readonly ready: Promise<unknown>;
}

export class PerNotebook {
  private enabled = false;
  /** Open notebooks, and what they have; `null` where they have nothing yet. */
  private readonly notebooks = new Map<NotebookPanel, IDisposable | null>();

  /**
   * `make` gives it to a notebook, and loads what that takes. That waits for the kernel, since without one nothing runs and
   * nothing need be loaded; or for what else `awaited` is.
   */
  constructor(
    private readonly make: (panel: NotebookPanel) => Promise<IDisposable>,
    private readonly awaited: (panel: NotebookPanel) => Awaited = (panel) => panel.sessionContext,
  ) {}

  add(panel: NotebookPanel): void {
    this.notebooks.set(panel, null);
    panel.disposed.connect(() => {
      this.notebooks.get(panel)?.dispose();
      this.notebooks.delete(panel);
    });
    void this.awaited(panel).ready.then(() => this.attach(panel));
  }

  get isEnabled(): boolean {
    return this.enabled;
  }

  setEnabled(enabled: boolean): void {
    this.enabled = enabled;
    for (const [panel, made] of this.notebooks) {
      if (!enabled) {
        made?.dispose();
        this.notebooks.set(panel, null);
      } else if (this.awaited(panel).isReady) {
        void this.attach(panel);
      }
    }
  }

  private async attach(panel: NotebookPanel): Promise<void> {
    if (!this.wants(panel)) {
      return;
    }
    const made = await this.make(panel);
    if (this.wants(panel)) {
      this.notebooks.set(panel, made);
    } else {
      // It was closed, switched off, or given another meanwhile.
      made.dispose();
    }
  }

  private wants(panel: NotebookPanel): boolean {
    return this.enabled && this.notebooks.get(panel) === null;
  }
}
