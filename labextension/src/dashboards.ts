/** Dashboards in the main area: opened by a command, and back in their places after a reload. */

import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { WidgetTracker, type MainAreaWidget } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import type { TranslationBundle } from '@jupyterlab/translation';

import type { Connection } from './connection';
import type { DashboardPanel } from './dashboard-panel';
import type { LabNotebooks } from './notebooks';
import type { Settings } from './settings';

export interface DashboardsOptions {
  app: JupyterFrontEnd;
  connection: Connection;
  notebooks: () => Promise<LabNotebooks>;
  /** Notebook 7 has none. */
  restorer: ILayoutRestorer | null;
  /** Whether the main area has tabs; that of Notebook 7 holds one document. */
  hasTabs: boolean;
  trans: TranslationBundle;
}

const PREFIX = 'gpumon-dashboard-';

export class Dashboards {
  private readonly tracker = new WidgetTracker<MainAreaWidget<DashboardPanel>>({ namespace: 'gpumon-dashboards' });

  private settings: Settings | null = null;

  constructor(private readonly options: DashboardsOptions) {}

  /** Heeds the settings that are about charts. */
  apply(settings: Settings): void {
    this.settings = settings;
    this.tracker.forEach(({ content }) => {
      content.apply(settings);
    });
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
    const known =
      id === null ? this.tracker.find(({ content }) => gpusOf(content.address) === gpusOf(address)) : undefined;
    if (known !== undefined) {
      app.shell.activateById(known.id);
      return;
    }
    const { newDashboard } = await import('./dashboard-panel');
    const shown = id === null && this.settings !== null ? asSet(address, this.settings) : address;
    const widget = newDashboard(id ?? this.newId(), shown, this.options);
    if (this.settings !== null) {
      widget.content.apply(this.settings);
    }
    void this.tracker.add(widget);
    widget.content.addressChanged.connect(() => {
      void this.tracker.save(widget);
    });
    app.shell.add(widget, 'main');
    app.shell.activateById(widget.id);
  }

  /** JupyterLab has another theme now. */
  themeChanged(): void {
    this.tracker.forEach(({ content }) => {
      content.themeChanged();
    });
  }

  private newId(): string {
    const isTaken = (id: string): boolean => this.tracker.find(({ content }) => content.id === id) !== undefined;
    let number = 1;
    while (isTaken(`${PREFIX}${String(number)}`)) {
      number += 1;
    }
    return `${PREFIX}${String(number)}`;
  }
}

/** The part of an address that says which GPUs. */
function gpusOf(address: string): string | null {
  return new URLSearchParams(address).get('gpu');
}

/** What the settings say of a dashboard, where an address does not. */
function asSet(address: string, { spanMinutes, charts }: Settings): string {
  const parts = new URLSearchParams(address);
  if (charts.length > 0 && !parts.has('charts')) {
    parts.set('charts', charts.join());
  }
  if (!parts.has('span')) {
    parts.set('span', String(spanMinutes));
  }
  return parts.toString();
}
