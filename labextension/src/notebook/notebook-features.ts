import type { ICommandPalette } from '@jupyterlab/apputils';
import type { ISettingRegistry } from '@jupyterlab/settingregistry';
import type { IStatusBar } from '@jupyterlab/statusbar';
import type { ITranslator } from '@jupyterlab/translation';

import type { ExtensionParts } from '../parts';
import type { Settings } from '../settings';
import { addToToolbar, type NotebookPanel } from './notebook-panel';

interface Disposable {
  dispose: () => void;
}

interface Readiness {
  readonly isReady: boolean;
  readonly ready: Promise<unknown>;
}

/** A feature that is added to each open notebook while a setting enables the feature. */
export class NotebookFeature {
  isEnabled = false;
  /** The feature of each open notebook; `null` if it is not loaded. */
  private readonly notebooks = new Map<NotebookPanel, Disposable | null>();

  /**
   * `make` loads the feature and adds it to a notebook. `make` is called when the object that
   * `awaited` returns for the notebook is ready. By default, this object is the kernel session.
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
        // While the feature was loading, the notebook was closed, or the feature was disabled or
        // created again. Therefore the loaded feature is discarded.
        made.dispose();
      }
    }
  }
}

export interface NotebookFeaturesOptions extends ExtensionParts {
  /** The status bar; `null` in Notebook 7. */
  statusBar: IStatusBar | null;
  palette: ICommandPalette | null;
  registry: ISettingRegistry | null;
  translator: ITranslator | null;
  showPanel: () => void;
}

const FEATURE_NAMES = ['cellLine', 'notebookUse', 'memoryWarnings', 'accelerators'] as const;
type FeatureName = (typeof FEATURE_NAMES)[number];

/**
 * The notebook features. Each is enabled by a setting: lines below cells, indicators in the
 * toolbars and the status bar, memory warnings, and the accelerator button.
 */
export class NotebookFeatures {
  private readonly open = new Set<NotebookPanel>();
  /**
   * The features, by the name of their setting. `cellLine` also measures the costs that are stored
   * if `storeCosts` is enabled.
   */
  private readonly parts: Record<FeatureName, NotebookFeature>;
  /** The objects that all notebooks share, by feature. */
  private readonly shared = new Map<FeatureName, Disposable>();
  private settings: Settings | null = null;

  constructor(options: NotebookFeaturesOptions) {
    const { app, connection, notebooks, trans, statusBar, showPanel } = options;
    const current = (): NotebookPanel | null =>
      [...this.open].find((notebook) => notebook === app.shell.currentWidget) ?? null;
    this.parts = {
      cellLine: new NotebookFeature(
        async (notebook) => {
          const { CellLines } = await import('./notebook-chunk');
          return new CellLines(notebook, {
            feed: () => connection.feed(),
            settings: () => this.settings,
          });
        },
        // Stored costs are shown even without a kernel, so this feature only waits until the
        // notebook file is loaded.
        ({ context }) => context,
      ),
      notebookUse: new NotebookFeature(async (notebook) => {
        const [feed, { ChipWidget }] = await Promise.all([
          connection.feed(),
          import('./notebook-chunk'),
        ]);
        if (statusBar !== null) {
          this.share('notebookUse', () => {
            const item = new ChipWidget(feed, current, showPanel);
            const changed = app.shell.currentChanged;
            changed?.connect(item.refresh);
            // The item is placed after the kernel status.
            const options = { item, align: 'left', rank: 10 } as const;
            const added = statusBar.registerStatusItem('gpumon:notebook-use', options);
            item.disposed.connect(() => {
              changed?.disconnect(item.refresh);
              added.dispose();
            });
            return item;
          });
        }
        const chip = new ChipWidget(feed, () => notebook, showPanel);
        addToToolbar(notebook, 'gpumon', chip);
        return chip;
      }),
      memoryWarnings: new NotebookFeature(async (notebook) => {
        const [feed, own, { CellFailures, MemoryWatch }] = await Promise.all([
          connection.feed(),
          notebooks(),
          import('./memory-chunk'),
        ]);
        // One instance watches all kernels, including those without an open notebook.
        this.share('memoryWarnings', () => new MemoryWatch(feed, own));
        return new CellFailures(notebook, feed, own);
      }),
      accelerators: new NotebookFeature(async (notebook) => {
        const [own, { AcceleratorButton }] = await Promise.all([
          notebooks(),
          import('./notebook-chunk'),
        ]);
        return new AcceleratorButton(notebook, own, trans);
      }),
    };
    void import('./notebook-chunk').then(({ addCostCommands }) =>
      addCostCommands({ ...options, current }),
    );
  }

  apply(settings: Settings): void {
    if (this.settings?.cellLine !== settings.cellLine) {
      // Lines read the setting `cellLine` only when they are created. Therefore the feature is
      // disabled here and created again below.
      this.parts.cellLine.setEnabled(false);
    }
    this.settings = settings;
    const isEnabled = { ...settings, cellLine: settings.cellLine || settings.storeCosts };
    for (const part of FEATURE_NAMES) {
      this.parts[part].setEnabled(isEnabled[part]);
      if (!isEnabled[part]) {
        this.shared.get(part)?.dispose();
        this.shared.delete(part);
      }
    }
  }

  add(notebook: NotebookPanel): void {
    this.open.add(notebook);
    notebook.disposed.connect(() => this.open.delete(notebook));
    FEATURE_NAMES.forEach((part) => this.parts[part].add(notebook));
  }

  /**
   * Creates the shared object of a feature once, unless the feature has been disabled meanwhile.
   */
  private share(part: FeatureName, make: () => Disposable): void {
    if (this.parts[part].isEnabled && !this.shared.has(part)) {
      this.shared.set(part, make());
    }
  }
}
