/** The views in tabs: charts, the fleet, and a node of the fleet. */

import type { MountHandle, MountedDashboard, MountOptions, ViewOptions } from '@gpumon/page';
import type { Feed } from '@gpumon/page/feed';
import type { MountedFleet } from '@gpumon/page/fleet';
import { URLExt } from '@jupyterlab/coreutils';

import { diagnoseStream, nodeFeed, createRequest } from '../server/stream';
import { FeedView, LazyView, type LazyViewOptions } from './lazy-view';
import type { TabView } from './tabs';

type ViewModule = typeof import('./view');

/** The prefix of a node's address that opens the node's charts. */
const CHARTS = 'charts';

export class DashboardPanel extends FeedView<MountedDashboard> implements TabView {
  readonly machine = null;
  onAddress = (): void => undefined;

  constructor(
    id: string,
    public address: string,
    options: LazyViewOptions,
  ) {
    super(id, options.trans.__('GPU Charts'), options);
  }

  /** Returns a title such as `GPU 0` or `GPUs 0, 1`. */
  describe(): string {
    const { trans } = this.options;
    const gpus = new URLSearchParams(this.address).get('gpu');
    if (gpus === null) {
      return trans.__('GPU Charts');
    }
    return gpus.includes(',')
      ? trans.__('GPUs %1', gpus.split(',').join(', '))
      : trans.__('GPU %1', gpus);
  }

  protected override mount(
    { mountDashboard }: ViewModule,
    options: MountOptions & ViewOptions,
  ): MountedDashboard {
    const onAddress = (address: string): void => {
      this.address = address;
      this.onAddress();
    };
    return mountDashboard(this.node, { ...options, address: this.address, onAddress });
  }
}

export class FleetPanel extends LazyView<MountedFleet> implements TabView {
  readonly machine = null;
  onAddress = (): void => undefined;

  constructor(
    public address: string,
    options: LazyViewOptions,
    private readonly onOpenNode: (node: string) => void,
  ) {
    super('gpumon-fleet', options);
    this.node.style.overflowY = 'auto';
  }

  describe(): string {
    return this.options.trans.__('GPU Fleet');
  }

  /** Shows the view at another address. */
  goTo(address: string): void {
    this.address = address;
    void this.mounted.then((view) => view.show(this.address));
  }

  protected override async load(): Promise<MountedFleet | null> {
    const { app, connection } = this.options;
    const { baseUrl } = app.serviceManager.serverSettings;
    // Opening the feed sets the language and the units.
    const [{ mountFleet, nodePath }] = await Promise.all([import('./fleet'), connection.feed()]);
    return this.isDisposed
      ? null
      : mountFleet(this.node, {
          title: this.describe(),
          request: this.request,
          opener: {
            hrefOf: (node) => URLExt.join(baseUrl, 'gpumon', nodePath(node) ?? ''),
            open: this.onOpenNode,
          },
          address: this.address,
          onAddress: (address) => {
            this.address = address;
            this.onAddress();
          },
        });
  }

  /**
   * Sends a request to the server. If Jupyter answers with an HTML page, the response explains the
   * reason.
   */
  private readonly request = async (path: string, init?: RequestInit): Promise<Response> => {
    const { app, trans } = this.options;
    const settings = app.serviceManager.serverSettings;
    const response = await createRequest(settings)(path, init);
    const isPage = response.headers.get('content-type')?.includes('html') === true;
    const why = isPage ? await diagnoseStream(settings, trans) : null;
    return why === null
      ? response
      : new Response(`${why.title}. ${why.message} ${why.command ?? ''}`, {
          status: Math.max(400, response.status),
        });
  };
}

/** A node of the fleet: its GPUs or their charts, from the node's own stream. */
export class NodePanel extends FeedView implements TabView {
  onAddress = (): void => undefined;
  private path = '';

  constructor(
    readonly machine: string,
    public address: string,
    options: LazyViewOptions,
    private readonly onOpenFleet: () => void,
  ) {
    super(`gpumon-node-${encodeURIComponent(machine)}`, machine, options);
    this.node.style.overflowY = 'auto';
  }

  describe(): string {
    return this.machine;
  }

  protected override async openFeed(): Promise<Feed> {
    const { app, connection, trans } = this.options;
    // Opening the feed sets the language and the units.
    const [{ nodePath }] = await Promise.all([import('./fleet'), connection.feed()]);
    this.path = nodePath(this.machine) ?? '';
    return nodeFeed(app.serviceManager.serverSettings, trans, this.path);
  }

  protected override mount(
    { mountDashboard, mountMonitor }: ViewModule,
    options: MountOptions & ViewOptions,
  ): MountHandle {
    const { trans, app } = this.options;
    const page = URLExt.join(app.serviceManager.serverSettings.baseUrl, 'gpumon', this.path);
    const setAddress = (address: string): void => {
      this.address = address;
      this.onAddress();
    };
    const goTo = (address: string) => (): void => {
      setAddress(address);
      this.remount();
    };
    const shared = [
      { id: 'gpumon-fleet-link', label: trans.__('Fleet'), onClick: this.onOpenFleet },
      {
        id: 'gpumon-open-page',
        label: trans.__('Open page'),
        onClick: () => window.open(page, '_blank', 'noopener'),
        inMenu: true,
      },
    ];
    if (!this.address.startsWith(CHARTS)) {
      return mountMonitor(this.node, {
        ...options,
        actions: () => shared,
        onOpenCharts: goTo(CHARTS),
        onOpenGpu: (index) => goTo(`${CHARTS}?gpu=${index}`)(),
      });
    }
    const overview = { id: 'gpumon-all-gpus', label: trans.__('All GPUs'), onClick: goTo('') };
    return mountDashboard(this.node, {
      ...options,
      address: this.address.slice(CHARTS.length + 1),
      actions: () => [overview, ...shared],
      onAddress: (address) => setAddress(address === '' ? CHARTS : `${CHARTS}?${address}`),
    });
  }
}
