/** The overview of all GPUs in a page, fed by a connection to a gpumon server. */

import { trans } from '../lib/translation';
import type { Feed } from '../model/feed';
import { mountView, type Mounted } from './mount';
import type { NotebookHost } from './notebook-host';
import { Overview } from './overview';

export interface MonitorOptions {
  /** Where what is shown comes from. */
  feed: Feed;
  /** The heading. */
  title?: string;
  /** What to say until the first answer. */
  connectingMessage?: string;
  /** Buttons for the head of the view. */
  actions?: readonly HTMLElement[];
  /** What can be done with notebooks, where the view stands beside them. */
  notebooks?: NotebookHost;
  /** Opens the charts of a GPU; without it, that is not possible. */
  onOpenGpu?: (index: number) => void;
  /** The time between two samples; without it, the server's own. */
  interval_ms?: number;
  /** How much of the past the lines show at first. */
  spanMinutes?: number;
}

export type Monitor = Mounted;

/** Shows the GPUs of a server inside `host`. */
export function mountMonitor(host: HTMLElement, options: MonitorOptions): Monitor {
  const { feed } = options;
  const { request } = feed.options;
  const monitor = mountView(
    host,
    feed,
    (invalidate, subscription) =>
      new Overview(feed.store, {
        title: options.title ?? trans.__('GPUs'),
        connectingMessage: options.connectingMessage ?? trans.__('Waiting for gpumon.'),
        actions: options.actions ?? [],
        notebooks: options.notebooks ?? null,
        onOpenGpu: options.onOpenGpu ?? null,
        spanMinutes: options.spanMinutes ?? 2,
        invalidate,
        onRetry: () => feed.retryNow(),
        runner: request === undefined ? null : { request, setRuns: subscription.setRuns },
      }),
  );
  monitor.setInterval(options.interval_ms ?? null);
  return monitor;
}
