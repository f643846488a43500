/** The overview of all GPUs on a page, with the data of a connection to a gpumon server. */

import { mountView, type MountHandle, type MountOptions } from './mount';
import { Overview, type OverviewOptions } from './overview';

export type MonitorOptions = MountOptions & OverviewOptions;

export interface Monitor extends MountHandle {
  /** Opens the benchmark dialog if the server can run benchmarks. */
  showBenchmarks: () => void;
  /** Starts the tour of the view. */
  showTour: () => void;
}

export function mountMonitor(host: HTMLElement, options: MonitorOptions): Monitor {
  const {
    store,
    options: { request, readOnly = false },
  } = options.feed;
  const mounted = mountView(host, options, (context, subscription) => {
    const setRuns = (runs: boolean): void => subscription.update({ runs });
    return new Overview(
      store,
      { ...options, ...context },
      request === undefined || readOnly ? null : { request, setRuns },
    );
  });
  return {
    ...mounted,
    showBenchmarks: () => mounted.view.showBenchmarks(),
    showTour: () => mounted.view.showTour(),
  };
}
