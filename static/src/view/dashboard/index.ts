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

/** A zoom by wheel or fingers is many states; browsers take few addresses in a second. */
const APART_MS = 300;

export function mountDashboard(
  host: HTMLElement,
  options: DashboardMountOptions,
): MountedDashboard {
  let waiting: ReturnType<typeof setTimeout> | undefined;
  let unsaved: string | null = null;
  const save = (): void => {
    clearTimeout(waiting);
    waiting = undefined;
    if (unsaved !== null) {
      options.onAddress(unsaved);
      unsaved = null;
      waiting = setTimeout(save, APART_MS);
    }
  };
  const { view, ...mounted } = mountView(host, options, (context, subscription) => {
    const state = fromAddress(options.address);
    const onState = (shown: typeof state): void => {
      unsaved = toAddress(shown);
      if (waiting === undefined) {
        save();
      }
    };
    const { store, options: server } = options.feed;
    return new Dashboard(store, subscription, {
      ...options,
      ...context,
      state,
      onState,
      request: server.request,
      readOnly: server.readOnly,
    });
  });
  return {
    ...mounted,
    show: (address) => view.show(fromAddress(address)),
    dispose: () => {
      save();
      mounted.dispose();
    },
  };
}
