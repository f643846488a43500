import type { NotebookPanel } from './notebook-panel';

export interface Disposable {
  dispose: () => void;
}

interface Readiness {
  readonly isReady: boolean;
  readonly ready: Promise<unknown>;
}

/** A feature of each open notebook that a setting enables. */
export class NotebookFeature {
  isEnabled = false;
  /** The feature of each open notebook; `null` if it is not loaded. */
  private readonly notebooks = new Map<NotebookPanel, Disposable | null>();

  /**
   * `make` loads the feature and adds it to a notebook. It is called when the object that `awaited`
   * returns is ready, by default the kernel session.
   */
  constructor(
    private readonly make: (panel: NotebookPanel) => Promise<Disposable>,
    private readonly awaited: (panel: NotebookPanel) => Readiness = (panel) => panel.sessionContext,
  ) {}

  add(panel: NotebookPanel): void {
    this.notebooks.set(panel, null);
    panel.disposed.connect(() => {
      this.notebooks.get(panel)?.dispose();
      this.notebooks.delete(panel);
    });
    void this.awaited(panel).ready.then(() => this.attach(panel));
  }

  setEnabled(enabled: boolean): void {
    this.isEnabled = enabled;
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
    const isMissing = (): boolean => this.isEnabled && this.notebooks.get(panel) === null;
    if (isMissing()) {
      const made = await this.make(panel);
      if (isMissing()) {
        this.notebooks.set(panel, made);
      } else {
        // While the feature was loaded, the notebook was closed, or the feature was disabled or
        // already created.
        made.dispose();
      }
    }
  }
}
