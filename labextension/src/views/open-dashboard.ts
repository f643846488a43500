/** Opens a dashboard; loaded when the first one is. */

import type { TranslationBundle } from '@jupyterlab/translation';

import { chosenCharts } from './chosen-charts';
import { newDashboard } from './dashboard-panel';
import type { Dashboards } from './dashboards';
import type { Settings } from '../settings';

const PREFIX = 'gpumon-dashboard-';

/** Opens what an address says, or shows the dashboard that is open on its GPUs. `id` is that of one from before. */
export function openDashboard(dashboards: Dashboards, address: string, id: string | null): void {
  const { tracker, settings, options } = dashboards;
  const { shell } = options.app;
  const known =
    id === null
      ? tracker.find(({ content }) => gpusOf(content.address) === gpusOf(address))
      : undefined;
  if (known !== undefined) {
    shell.activateById(known.id);
    return;
  }
  const shown =
    id === null && settings !== null ? asSet(address, settings, options.trans) : address;
  const widget = newDashboard(id ?? newId(dashboards), shown, options);
  if (settings !== null) {
    widget.content.apply(settings);
  }
  void tracker.add(widget);
  widget.content.addressChanged.connect(() => {
    void tracker.save(widget);
  });
  shell.add(widget, 'main');
  shell.activateById(widget.id);
}

function newId({ tracker }: Dashboards): string {
  const isTaken = (id: string): boolean =>
    tracker.find(({ content }) => content.id === id) !== undefined;
  let number = 1;
  while (isTaken(`${PREFIX}${number}`)) {
    number += 1;
  }
  return `${PREFIX}${number}`;
}

function gpusOf(address: string): string | null {
  return new URLSearchParams(address).get('gpu');
}

/** What the settings say of a dashboard, where an address does not. */
function asSet(
  address: string,
  { spanMinutes, charts }: Settings,
  trans: TranslationBundle,
): string {
  const parts = new URLSearchParams(address);
  const ids = chosenCharts(charts, trans);
  if (ids.length > 0 && !parts.has('charts')) {
    parts.set('charts', ids.join());
  }
  if (!parts.has('span')) {
    parts.set('span', String(spanMinutes));
  }
  return parts.toString();
}
