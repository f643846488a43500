/** The fleet and its nodes in the main area: opened by a command, and back in their places after a reload. */

import type { ILayoutRestorer, JupyterFrontEnd } from '@jupyterlab/application';
import { WidgetTracker, type MainAreaWidget } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';
import type { Widget } from '@lumino/widgets';

import type { Settings } from '../settings';
import type { LazyViewOptions } from '../views/lazy-view';

export interface FleetsOptions extends LazyViewOptions {
  app: JupyterFrontEnd;
  /** Notebook 7 has none. */
  restorer: ILayoutRestorer | null;
  /** Whether the main area has tabs; that of Notebook 7 holds one document. */
  hasTabs: boolean;
}

/** The fleet, or one of its nodes. */
export interface FleetWidget extends Widget {
  /** What it shows, as a part of an address. */
  address: string;
  /** The name of the node; `null` for the fleet. */
  readonly machine: string | null;
  apply: (settings: Settings) => void;
  themeChanged: () => void;
}

export class Fleets {
  readonly tracker = new WidgetTracker<MainAreaWidget<FleetWidget>>({ namespace: 'gpumon-fleets' });
  settings: Settings | null = null;

  constructor(readonly options: FleetsOptions) {}

  apply(settings: Settings): void {
    this.settings = settings;
    this.tracker.forEach(({ content }) => content.apply(settings));
  }

  /** Brings back what was open; `command` is what opens it. */
  restore(command: string): void {
    void this.options.restorer?.restore(this.tracker, {
      command,
      args: ({ content: { address, machine } }) => ({ address, node: machine, isRestored: true }),
      name: ({ content }) => content.id,
    });
  }

  /** Shows the fleet, or a node; without an address, what is open of it. */
  async open(address: string | null, node: string | null, isRestored: boolean): Promise<void> {
    const { app, hasTabs } = this.options;
    if (!hasTabs) {
      // The page that gpumon serves has the same.
      window.open(
        `${URLExt.join(app.serviceManager.serverSettings.baseUrl, 'gpumon/')}#fleet?${address ?? ''}`,
        '_blank',
      );
      return;
    }
    const { openFleet } = await import('./open-fleet');
    openFleet(this, address, node, isRestored);
  }

  /** JupyterLab has another theme now. */
  themeChanged(): void {
    this.tracker.forEach(({ content }) => content.themeChanged());
  }
}
