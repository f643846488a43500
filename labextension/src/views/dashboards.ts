/** Dashboards in the main area: opened by a command, and back in their places after a reload. */

import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { WidgetTracker, type MainAreaWidget } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';

import type { DashboardPanel } from './dashboard-panel';
import type { LazyViewOptions } from './lazy-view';
import type { Settings } from '../settings';

export interface DashboardsOptions extends LazyViewOptions {
  app: JupyterFrontEnd;
  /** Notebook 7 has none. */
  restorer: ILayoutRestorer | null;
  /** Whether the main area has tabs; that of Notebook 7 holds one document. */
  hasTabs: boolean;
}

export class Dashboards {
  readonly tracker = new WidgetTracker<MainAreaWidget<DashboardPanel>>({
    namespace: 'gpumon-dashboards',
  });
  settings: Settings | null = null;

  constructor(readonly options: DashboardsOptions) {}

  apply(settings: Settings): void {
    if (settings.charts.join() !== (this.settings?.charts.join() ?? '')) {
      void import('./chosen-charts').then(({ warnOfUnknown }) =>
        warnOfUnknown(settings.charts, this.options.trans),
      );
    }
    this.settings = settings;
    this.tracker.forEach(({ content }) => content.apply(settings));
  }

  /** Brings back what was open; `command` is what opens a dashboard. */
  restore(command: string): void {
    void this.options.restorer?.restore(this.tracker, {
      command,
      args: ({ content }) => ({ address: content.address, id: content.id }),
      name: ({ content }) => content.id,
    });
  }

  /** Opens what an address says, or shows the dashboard that is open on its GPUs. `id` is that of one from before. */
  async open(address: string, id: string | null): Promise<void> {
    const { app, hasTabs } = this.options;
    if (!hasTabs) {
      // The page that gpumon serves has the same charts.
      const page = URLExt.join(app.serviceManager.serverSettings.baseUrl, 'gpumon/');
      window.open(`${page}#charts?${address}`, '_blank', 'noopener');
      return;
    }
    const { openDashboard } = await import('./open-dashboard');
    openDashboard(this, address, id);
  }

  /** JupyterLab has another theme now. */
  themeChanged(): void {
    this.tracker.forEach(({ content }) => content.themeChanged());
  }
}
