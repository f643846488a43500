/** The overview of all GPUs in a page, fed by a connection to a gpumon server. */

import { mountView, type Mounted, type MountOptions } from './mount';
import { Overview, type OverviewOptions } from './overview';

export type MonitorOptions = MountOptions & OverviewOptions;

export function mountMonitor(host: HTMLElement, options: MonitorOptions): Mounted {
  const {
    store,
    options: { request },
  } = options.feed;
  return mountView(host, options, (context, subscription) => {
    const setRuns = (runs: boolean): void => subscription.update({ runs });
    return new Overview(store, { ...options, ...context }, request === undefined ? null : { request, setRuns });
  });
}
