/** A dashboard on a page, with the data of a connection to a gpumon server. */

import { parseDashboardState, formatDashboardState } from '../../model/dashboard/state';
import { mountView, type MountHandle, type MountOptions, type ViewOptions } from '../store-view';
import { Dashboard } from './dashboard';

interface DashboardMountOptions extends MountOptions, ViewOptions {
  /** The initial state, as a URL query. */
  address: string;
  /** Called with the URL query of a new state. */
  onAddress: (address: string) => void;
}

export interface MountedDashboard extends MountHandle {
  /** Shows the state of another URL query. */
  show: (address: string) => void;
}

/**
 * The minimum time between two calls of `onAddress`. Zooming by wheel or fingers changes the state
 * often, but browsers limit the rate of URL changes.
 */
const MIN_SAVE_INTERVAL_MS = 300;

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
      waiting = setTimeout(save, MIN_SAVE_INTERVAL_MS);
    }
  };
  const { view, ...mounted } = mountView(host, options, (context, subscription) => {
    const state = parseDashboardState(options.address);
    const onState = (shown: typeof state): void => {
      unsaved = formatDashboardState(shown);
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
    show: (address) => view.show(parseDashboardState(address)),
    dispose: () => {
      save();
      mounted.dispose();
    },
  };
}
