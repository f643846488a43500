/** A dashboard in a page, fed by a connection to a gpumon server. */

import { fromAddress, toAddress } from '../../model/dashboard/state';
import { mountView, type Mounted, type MountOptions } from '../mount';
import type { ViewOptions } from '../store-view';
import { Dashboard } from './dashboard';

export interface DashboardMountOptions extends MountOptions, ViewOptions {
  /** What to show, as the part of an address that says so. */
  address: string;
  /** Something else is shown; `address` brings it back. */
  onAddress: (address: string) => void;
}

export interface MountedDashboard extends Mounted {
  /** Shows what another address says. */
  show: (address: string) => void;
}

export function mountDashboard(host: HTMLElement, options: DashboardMountOptions): MountedDashboard {
  const { view, ...mounted } = mountView(host, options, (context, subscription) => {
    const state = fromAddress(options.address);
    const onState = (shown: typeof state): void => options.onAddress(toAddress(shown));
    return new Dashboard(options.feed.store, subscription, { ...options, ...context, state, onState });
  });
  return { ...mounted, show: (address) => view.show(fromAddress(address)) };
}
