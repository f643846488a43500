/** A node of the fleet as a tab of the main area: its GPUs, or their charts, fed by its own stream. */

import { nodePath } from '@gpumon/page/fleet';
import type { Feed } from '@gpumon/page/feed';
import type { Mounted, MountOptions, ViewOptions } from '@gpumon/page';
import { URLExt } from '@jupyterlab/coreutils';

import { nodeFeed } from '../server/stream';
import { LazyView } from '../views/lazy-view';
import type { FleetsOptions, FleetWidget } from './fleets';

export interface NodePanelOptions extends FleetsOptions {
  onAddress: () => void;
  /** Back to where the fleet was left. */
  onFleet: () => void;
}

type ViewModule = typeof import('../views/view');

/** Begins what an address says of charts; without it, the GPUs of the node are shown. */
const CHARTS = 'charts';

export class NodePanel extends LazyView<Mounted> implements FleetWidget {
  constructor(
    readonly machine: string,
    public address: string,
    private readonly options: NodePanelOptions,
  ) {
    super(`gpumon-node-${encodeURIComponent(machine)}`, machine, options);
    this.node.style.overflowY = 'auto';
  }

  protected override async feed(): Promise<Feed> {
    const { app, connection, trans } = this.options;
    // Texts and units are those of the connection.
    await connection.feed();
    return nodeFeed(app.serviceManager.serverSettings, trans, nodePath(this.machine) ?? '');
  }

  protected override mount(module: ViewModule, options: MountOptions & ViewOptions): Mounted {
    const { feed } = options;
    // Between GPUs and charts, the connection and what is known stay.
    const subscription = feed.subscribe(() => undefined);
    subscription.update({ active: false });
    let shown = this.mountShown(module, options);
    let isVisible = true;
    this.go = (address) => {
      this.address = address;
      this.options.onAddress();
      shown.dispose();
      shown = this.mountShown(module, options);
      shown.setVisible(isVisible);
    };
    return {
      setVisible: (visible) => {
        isVisible = visible;
        shown.setVisible(visible);
      },
      setInterval: (interval_ms) => shown.setInterval(interval_ms),
      invalidate: () => shown.invalidate(),
      themeChanged: () => shown.themeChanged(),
      dispose: () => {
        shown.dispose();
        subscription.unsubscribe();
      },
    };
  }

  /** Shows something else of the node. */
  private go: (address: string) => void = () => undefined;

  private mountShown(module: ViewModule, options: MountOptions & ViewOptions): Mounted {
    const { trans, app, onFleet } = this.options;
    const page = document.createElement('a');
    page.href = URLExt.join(
      app.serviceManager.serverSettings.baseUrl,
      'gpumon',
      nodePath(this.machine) ?? '',
    );
    page.target = '_blank';
    page.rel = 'noopener';
    page.className = 'gpumon-chip';
    page.textContent = trans.__('Open page');
    const fleet = chip(trans.__('Fleet'), onFleet);
    if (!this.address.startsWith(CHARTS)) {
      return module.mountMonitor(this.node, {
        ...options,
        actions: [chip(trans.__('Charts'), () => this.go(CHARTS)), fleet, page],
        onOpenGpu: (index) => this.go(`${CHARTS}?gpu=${index}`),
      });
    }
    return module.mountDashboard(this.node, {
      ...options,
      address: this.address.slice(CHARTS.length + 1),
      actions: [chip(trans.__('All GPUs'), () => this.go('')), fleet, page],
      onAddress: (address) => {
        this.address = address === '' ? CHARTS : `${CHARTS}?${address}`;
        this.options.onAddress();
      },
    });
  }
}

function chip(text: string, onClick: () => void): HTMLElement {
  const element = document.createElement('button');
  element.type = 'button';
  element.className = 'gpumon-chip';
  element.textContent = text;
  element.addEventListener('click', onClick);
  return element;
}
