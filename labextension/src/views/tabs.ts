import type { ILayoutRestorer } from '@jupyterlab/application';
import { WidgetTracker, type MainAreaWidget } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import type { Widget } from '@lumino/widgets';

import type { ExtensionParts } from '../parts';
import type { Settings } from '../settings';
import type { LazyView } from './lazy-view';

export interface TabsOptions extends ExtensionParts {
  /** The layout restorer; `null` in Notebook 7. */
  restorer: ILayoutRestorer | null;
  /** Whether the main area has tabs. In Notebook 7, the main area shows one document. */
  hasTabs: boolean;
}

/** A view in a tab of the main area. */
export interface TabView extends Widget, Pick<LazyView, 'apply' | 'themeChanged'> {
  /** The part of the URL that selects the content of the tab. */
  address: string;
  /** The name of a node of the fleet; `null` for the other tabs. */
  readonly machine: string | null;
  /** Called when `address` has changed. */
  onAddress: () => void;
  describe: () => string;
}

type Tracker = WidgetTracker<MainAreaWidget<TabView>>;

/** The tabs with charts, the fleet and its nodes, which are reopened after a reload. */
export class Tabs {
  readonly charts: Tracker = new WidgetTracker({ namespace: 'gpumon-dashboards' });
  readonly fleet: Tracker = new WidgetTracker({ namespace: 'gpumon-fleets' });
  settings: Settings | null = null;

  constructor(readonly options: TabsOptions) {}

  apply(settings: Settings): void {
    const { charts } = settings;
    if (charts.join() !== (this.settings?.charts.join() ?? '')) {
      void import('./chosen-charts').then(({ warnAboutUnknownCharts }) =>
        warnAboutUnknownCharts(charts, this.options.trans),
      );
    }
    this.settings = settings;
    this.forEach((view) => view.apply(settings));
  }

  themeChanged(): void {
    this.forEach((view) => view.themeChanged());
  }

  /**
   * Reopens the tabs of the last session. `openCharts` and `openFleet` are the IDs of the commands
   * that open the tabs.
   */
  restoreTabs(openCharts: string, openFleet: string): void {
    for (const [tracker, command] of [
      [this.charts, openCharts],
      [this.fleet, openFleet],
    ] as const) {
      void this.options.restorer?.restore(tracker, {
        command,
        args: ({ content: { address, id, machine } }) => ({
          address,
          id,
          node: machine,
          isRestored: true,
        }),
        name: ({ content }) => content.id,
      });
    }
  }

  /**
   * Opens the charts of an address. `id` is the ID of the tab's widget if the tab is restored after
   * a reload, and otherwise `null`.
   */
  async openCharts(address: string, id: string | null): Promise<void> {
    if (this.options.hasTabs) {
      (await import('./open-tabs')).openCharts(this, address, id);
    } else {
      this.openServerPage(`#charts?${address}`);
    }
  }

  /**
   * Opens the fleet or one of its nodes. If `address` is `null`, a tab that is already open keeps
   * its state.
   */
  async openFleet(address: string | null, node: string | null, isRestored: boolean): Promise<void> {
    if (this.options.hasTabs) {
      (await import('./open-tabs')).openFleet(this, address, node, isRestored);
    } else {
      this.openServerPage(`#fleet?${address ?? ''}`);
    }
  }

  /** Opens the server's own page, which has the same views. */
  private openServerPage(address: string): void {
    const { baseUrl } = this.options.app.serviceManager.serverSettings;
    window.open(URLExt.join(baseUrl, 'gpumon/') + address, '_blank', 'noopener');
  }

  private forEach(use: (view: TabView) => void): void {
    this.charts.forEach(({ content }) => use(content));
    this.fleet.forEach(({ content }) => use(content));
  }
}
