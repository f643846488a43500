/** A dashboard in a page, fed by a connection to a gpumon server. */

import { trans } from '../../lib/translation';
import { fromAddress, toAddress } from '../../model/dashboard/state';
import type { Feed } from '../../model/feed';
import { mountView, type Mounted } from '../mount';
import type { NotebookHost } from '../notebook-host';
import { Dashboard } from './dashboard';

export interface DashboardMountOptions {
  /** Where what is shown comes from. */
  feed: Feed;
  /** What to show, as the part of an address that says so. */
  address: string;
  /** The heading. */
  title?: string;
  /** What to say until the first answer. */
  connectingMessage?: string;
  /** What can be done with notebooks, where the view stands beside them. */
  notebooks?: NotebookHost;
  /** Buttons for the head. */
  actions?: readonly HTMLElement[];
  /** The time between two samples; without it, the server's own. */
  interval_ms?: number;
  /** Something else is shown; `address` brings it back. */
  onAddress?: (address: string) => void;
}

export interface MountedDashboard extends Mounted {
  /** Shows what another address says. */
  show: (address: string) => void;
}

/** Shows charts inside `host`. */
export function mountDashboard(host: HTMLElement, options: DashboardMountOptions): MountedDashboard {
  const { feed } = options;
  const { view, ...mounted } = mountView(
    host,
    feed,
    (invalidate, subscription) =>
      new Dashboard(feed.store, subscription, {
        title: options.title ?? trans.__('GPU charts'),
        connectingMessage: options.connectingMessage ?? trans.__('Waiting for gpumon.'),
        notebooks: options.notebooks ?? null,
        actions: options.actions ?? [],
        state: fromAddress(options.address),
        onState: (state) => options.onAddress?.(toAddress(state)),
        invalidate,
        onRetry: () => feed.retryNow(),
      }),
  );
  mounted.setInterval(options.interval_ms ?? null);
  return {
    ...mounted,
    show: (address) => view.show(fromAddress(address)),
  };
}
