/** The views in tabs: charts, the fleet, and a node of it. */

import type { Mounted, MountedDashboard, MountOptions, ViewOptions } from '@gpumon/page';
import type { Feed } from '@gpumon/page/feed';
import type { MountedFleet } from '@gpumon/page/fleet';
import { URLExt } from '@jupyterlab/coreutils';
import type { ServerConnection } from '@jupyterlab/services';
import type { TranslationBundle } from '@jupyterlab/translation';

import { diagnose, nodeFeed, requestOf } from '../server/stream';
import { FeedView, LazyView } from './lazy-view';
import type { TabsOptions, TabView } from './tabs';

type ViewModule = typeof import('./view');

/** The prefix of a node's address that shows its charts. */
const CHARTS = 'charts';

export class DashboardPanel extends FeedView<MountedDashboard> implements TabView {
  readonly machine = null;
  onAddress = (): void => undefined;

  constructor(
    id: string,
    public address: string,
    options: TabsOptions,
  ) {
    super(id, options.trans.__('GPU Charts'), options);
  }

  /** Returns a title such as `GPU 0` or `GPUs 0, 1`. */
  describe(): string {
    const { trans } = this.options;
    const [gpu, ...others] = new URLSearchParams(this.address).get('gpu')?.split(',') ?? [];
    if (gpu === undefined) {
      return trans.__('GPU Charts');
    }
    return others.length === 0
      ? trans.__('GPU %1', gpu)
      : trans.__('GPUs %1', [gpu, ...others].join(', '));
  }

  protected override mount(
    { mountDashboard }: ViewModule,
    options: MountOptions & ViewOptions,
  ): MountedDashboard {
    return mountDashboard(this.node, {
      ...options,
      address: this.address,
      onAddress: (address) => {
        this.address = address;
        this.onAddress();
      },
    });
  }
}

export class FleetPanel extends LazyView<MountedFleet> implements TabView {
  readonly machine = null;
  onAddress = (): void => undefined;

  constructor(
    public address: string,
    private readonly tabs: TabsOptions,
    private readonly onOpenNode: (node: string) => void,
  ) {
    super('gpumon-fleet', tabs);
    this.node.style.overflowY = 'auto';
  }

  describe(): string {
    return this.options.trans.__('GPU Fleet');
  }

  /** Shows another address. */
  goTo(address: string): void {
    this.address = address;
    void this.mounted.then((view) => view.show(this.address));
  }

  protected override async load(): Promise<MountedFleet | null> {
    const { app, connection, trans } = this.tabs;
    const settings = app.serviceManager.serverSettings;
    // The connection sets the language and the units.
    const [{ mountFleet, nodePath }] = await Promise.all([import('./fleet'), connection.feed()]);
    return this.isDisposed
      ? null
      : mountFleet(this.node, {
          title: this.describe(),
          request: explainPages(settings, trans),
          opener: {
            hrefOf: (node) => URLExt.join(settings.baseUrl, 'gpumon', nodePath(node) ?? ''),
            open: this.onOpenNode,
          },
          address: this.address,
          onAddress: (address) => {
            this.address = address;
            this.onAddress();
          },
        });
  }
}

/** A node of the fleet: its GPUs or their charts, from the node's own stream. */
export class NodePanel extends FeedView implements TabView {
  onAddress = (): void => undefined;
  private path = '';

  constructor(
    readonly machine: string,
    public address: string,
    private readonly tabs: TabsOptions,
    private readonly onOpenFleet: () => void,
  ) {
    super(`gpumon-node-${encodeURIComponent(machine)}`, machine, tabs);
    this.node.style.overflowY = 'auto';
  }

  describe(): string {
    return this.machine;
  }

  protected override async openFeed(): Promise<Feed> {
    const { app, connection, trans } = this.tabs;
    // The connection sets the language and the units.
    const [{ nodePath }] = await Promise.all([import('./fleet'), connection.feed()]);
    this.path = nodePath(this.machine) ?? '';
    return nodeFeed(app.serviceManager.serverSettings, trans, this.path);
  }

  protected override mount(module: ViewModule, options: MountOptions & ViewOptions): Mounted {
    // The connection and the store are kept while GPUs and charts replace each other.
    const subscription = options.feed.subscribe(() => undefined);
    subscription.update({ active: false });
    let shown: Mounted;
    let isVisible = true;
    const show = (): void => {
      shown = this.mountShown(module, options, (address) => {
        this.address = address;
        this.onAddress();
        shown.dispose();
        show();
        shown.setVisible(isVisible);
      });
    };
    show();
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

  private mountShown(
    { mountDashboard, mountMonitor }: ViewModule,
    options: MountOptions & ViewOptions,
    goTo: (address: string) => void,
  ): Mounted {
    const { trans, app } = this.tabs;
    const { baseUrl } = app.serviceManager.serverSettings;
    const fleet = { id: 'gpumon-fleet-link', label: trans.__('Fleet'), onClick: this.onOpenFleet };
    const page = URLExt.join(baseUrl, 'gpumon', this.path);
    const openPage = {
      id: 'gpumon-open-page',
      label: trans.__('Open page'),
      onClick: () => window.open(page, '_blank', 'noopener'),
      inMenu: true,
    };
    if (!this.address.startsWith(CHARTS)) {
      return mountMonitor(this.node, {
        ...options,
        actions: () => [fleet, openPage],
        onOpenCharts: () => goTo(CHARTS),
        onOpenGpu: (index) => goTo(`${CHARTS}?gpu=${index}`),
      });
    }
    const overview = {
      id: 'gpumon-all-gpus',
      label: trans.__('All GPUs'),
      onClick: () => goTo(''),
    };
    return mountDashboard(this.node, {
      ...options,
      address: this.address.slice(CHARTS.length + 1),
      actions: () => [overview, fleet, openPage],
      onAddress: (address) => {
        this.address = address === '' ? CHARTS : `${CHARTS}?${address}`;
        this.onAddress();
      },
    });
  }
}

/** Returns requests to the server. If Jupyter answers with a page, they explain why. */
function explainPages(
  settings: ServerConnection.ISettings,
  trans: TranslationBundle,
): (path: string, init?: RequestInit) => Promise<Response> {
  const request = requestOf(settings);
  return async (path, init) => {
    const response = await request(path, init);
    const isPage = response.headers.get('content-type')?.includes('html') === true;
    const why = isPage ? await diagnose(settings, trans) : null;
    return why === null
      ? response
      : new Response(`${why.title}. ${why.message} ${why.command ?? ''}`, {
          status: Math.max(400, response.status),
        });
  };
}
