import { MainAreaWidget } from '@jupyterlab/apputils';

import { gpuIcon } from '../icon';
import { findChartIds } from './chosen-charts';
import { DashboardPanel, FleetPanel, NodePanel } from './tab-views';
import type { Tabs, TabView } from './tabs';

const PREFIX = 'gpumon-dashboard-';

/** Opens a tab with charts, or shows the existing tab with charts of the same GPUs. */
export function openCharts(tabs: Tabs, address: string, id: string | null): void {
  const { charts, options } = tabs;
  if (id !== null) {
    addTab(tabs, charts, new DashboardPanel(id, address, options), true);
    return;
  }
  const known = charts.find(({ content }) => gpusOf(content.address) === gpusOf(address));
  if (known !== undefined) {
    options.app.shell.activateById(known.id);
    return;
  }
  const shown = addSettingsToAddress(tabs, address);
  addTab(tabs, charts, new DashboardPanel(newId(tabs), shown, options), true);
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

function newId({ charts }: Tabs): string {
  let number = 1;
  while (charts.find(({ content }) => content.id === `${PREFIX}${number}`) !== undefined) {
    number += 1;
  }
  return `${PREFIX}${number}`;
}

function gpusOf(address: string): string | null {
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
