/** Opens tabs with charts, the fleet, or a node of the fleet. */

import type { MountedDashboard, MountHandle, MountOptions, ViewOptions } from '@gpumon/page';
import type { Feed } from '@gpumon/page/feed';
import type { MountedFleet } from '@gpumon/page/fleet';
import { MainAreaWidget } from '@jupyterlab/apputils';
import { URLExt } from '@jupyterlab/coreutils';

import type { ExtensionParts } from '../parts';
import { createRequest, diagnoseStream, nodeFeed } from '../server/stream';
import { findChartIds } from './chosen-charts';
import { FeedView, LazyView } from './lazy-view';
import { gpuIcon } from './panel';
import type { Tabs, TabView } from './tabs';

/** The prefix of the IDs of tabs with charts. */
const PREFIX = 'gpumon-dashboard-';
/** The address of a node's tab starts with this prefix if the tab shows charts. */
const CHARTS = 'charts';

type ViewModule = typeof import('./view');

/** Opens a tab with charts, or shows the existing tab with charts of the same GPUs. */
export function openCharts(tabs: Tabs, address: string, id: string | null): void {
  const { charts, options } = tabs;
  if (id !== null) {
    addTab(tabs, charts, new DashboardPanel(id, address, options), true);
    return;
  }
  const known = charts.find(
    ({ content }) => readGpuParameter(content.address) === readGpuParameter(address),
  );
  if (known !== undefined) {
    options.app.shell.activateById(known.id);
    return;
  }
  const shown = addSettingsToAddress(tabs, address);
  addTab(tabs, charts, new DashboardPanel(findUnusedTabId(tabs), shown, options), true);
}

/** Opens a tab with the fleet or a node, or shows the existing tab. */
export function openFleet(
  tabs: Tabs,
  address: string | null,
  node: string | null,
  isRestored: boolean,
): void {
  const { fleet, options } = tabs;
  const known = fleet.find(({ content }) => content.machine === node);
  if (known !== undefined) {
    if (address !== null && known.content instanceof FleetPanel) {
      known.content.goTo(address);
    }
    options.app.shell.activateById(known.id);
    return;
  }
  const open = (name: string | null) => (): void => void tabs.openFleet(null, name, false);
  const view =
    node === null
      ? new FleetPanel(address ?? '', options, (name) => open(name)())
      : new NodePanel(node, address ?? '', options, open(null));
  addTab(tabs, fleet, view, !isRestored);
}

function addTab(
  { settings, options }: Tabs,
  tracker: Tabs['charts'],
  content: TabView,
  isActive: boolean,
): void {
  const { shell } = options.app;
  const widget = new MainAreaWidget({ content });
  widget.id = `${content.id}-tab`;
  widget.title.icon = gpuIcon;
  widget.title.label = content.describe();
  widget.title.closable = true;
  if (settings !== null) {
    content.apply(settings);
  }
  void tracker.add(widget);
  content.onAddress = () => {
    widget.title.label = content.describe();
    void tracker.save(widget);
  };
  shell.add(widget, 'main');
  if (isActive) {
    shell.activateById(widget.id);
  }
}

function findUnusedTabId({ charts }: Tabs): string {
  let number = 1;
  while (charts.find(({ content }) => content.id === `${PREFIX}${number}`) !== undefined) {
    number += 1;
  }
  return `${PREFIX}${number}`;
}

function readGpuParameter(address: string): string | null {
  return new URLSearchParams(address).get('gpu');
}

/**
 * Adds the time range and the charts from the settings to an address that does not specify them.
 */
function addSettingsToAddress({ settings, options }: Tabs, address: string): string {
  const parts = new URLSearchParams(address);
  if (settings === null) {
    return address;
  }
  const ids = findChartIds(settings.charts, options.trans);
  if (ids.length > 0 && !parts.has('charts')) {
    parts.set('charts', ids.join());
  }
  if (!parts.has('span')) {
    parts.set('span', String(settings.spanMinutes));
  }
  return parts.toString();
}

function setAddress(view: TabView, address: string): void {
  view.address = address;
  view.onAddress();
}

class DashboardPanel extends FeedView<MountedDashboard> implements TabView {
  readonly machine = null;
  onAddress = (): void => undefined;

  constructor(
    id: string,
    public address: string,
    options: ExtensionParts,
  ) {
    super(id, options.trans.__('GPU Charts'), options);
  }

  /** Returns a title such as `GPU 0` or `GPUs 0, 1`. */
  describe(): string {
    const { trans } = this.options;
    const gpus = readGpuParameter(this.address);
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
    return mountDashboard(this.node, {
      ...options,
      address: this.address,
      onAddress: (address) => setAddress(this, address),
    });
  }
}

class FleetPanel extends LazyView<MountedFleet> implements TabView {
  readonly machine = null;
  onAddress = (): void => undefined;

  constructor(
    public address: string,
    options: ExtensionParts,
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
    // The feed is awaited only because opening it sets the language and the units.
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
          onAddress: (address) => setAddress(this, address),
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
class NodePanel extends FeedView implements TabView {
  onAddress = (): void => undefined;
  private path = '';

  constructor(
    readonly machine: string,
    public address: string,
    options: ExtensionParts,
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
    // The feed is awaited only because opening it sets the language and the units.
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
    const goTo = (address: string) => (): void => {
      setAddress(this, address);
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
      onAddress: (address) => setAddress(this, address === '' ? CHARTS : `${CHARTS}?${address}`),
    });
  }
}
