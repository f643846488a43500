/** The fleet view on a page or in a widget. */

import { FrameLoop } from '../../lib/frame-loop';
import { loadXids } from '../../model/alerts';
import { FleetReader } from '../../model/fleet/reader';
import { formatFleetState, parseFleetState } from '../../model/fleet/state';
import type { Request } from '../../model/request';
import type { MountHandle } from '../store-view';
import { FleetView, type FleetViewOptions } from './fleet-view';

export { nodePath } from './scene';

interface FleetOptions extends Pick<FleetViewOptions, 'title' | 'actions' | 'opener'> {
  request: Request;
  /** The URL query with the state of the view. */
  address: string;
  /** Called with the URL query of a new state. */
  onAddress: (address: string) => void;
  /** Called before a node opens, which may replace the fleet. */
  onLeave?: () => void;
  /** Called when the server requires the user to sign in. */
  onRefused?: () => void;
}

export interface MountedFleet extends Omit<MountHandle, 'setInterval'> {
  /** Shows the state of another URL query. */
  show: (address: string) => void;
  /** Scrolls to a position as soon as the content is loaded. */
  scrollTo: (top: number) => void;
  /** Repeats all requests immediately. */
  retry: () => void;
}

/** The interval at which ages of data are updated, even if no data arrive. */
const TICK_MS = 5000;
/**
 * The minimum time between two calls of `onAddress`. Each typed letter changes the state, but
 * browsers limit the rate of URL changes.
 */
const ADDRESS_MS = 300;

export function mountFleet(host: HTMLElement, options: FleetOptions): MountedFleet {
  const loop = new FrameLoop(() => {
    view.render();
    // Requests are sent after rendering, so that they do not delay it.
    reader.setRequestedData(view.listRequestedData());
  });
  const invalidate = (): void => loop.invalidate();
  const reader = new FleetReader(options.request, invalidate, options.onRefused);
  let saving: ReturnType<typeof setTimeout> | undefined;
  let unsaved: string | null = null;
  const save = (): void => {
    clearTimeout(saving);
    if (unsaved !== null) {
      options.onAddress(unsaved);
      unsaved = null;
    }
  };
  const view: FleetView = new FleetView(reader, parseFleetState(options.address), {
    ...options,
    invalidate,
    onShown: (shown) => {
      unsaved = formatFleetState(shown);
      clearTimeout(saving);
      saving = setTimeout(save, ADDRESS_MS);
    },
    onLeave: () => {
      save();
      options.onLeave?.();
    },
  });
  let visible = true;
  const update = (): void => {
    const isSeen = visible && !document.hidden;
    loop.setRunning(isSeen);
    reader.setActive(isSeen);
  };
  const ticker = setInterval(invalidate, TICK_MS);
  document.addEventListener('visibilitychange', update);
  host.append(view.element);
  update();
  invalidate();
  // The meanings of Xids are loaded after the first frame.
  void loadXids().then(invalidate, () => undefined);
  return {
    setVisible: (now) => {
      visible = now;
      update();
    },
    invalidate,
    themeChanged: () => view.themeChanged(),
    show: (address) => view.show(parseFleetState(address)),
    scrollTo: (top) => view.scrollWhenReady(top),
    retry: () => reader.retry(),
    dispose: () => {
      save();
      clearInterval(ticker);
      document.removeEventListener('visibilitychange', update);
      loop.setRunning(false);
      reader.dispose();
      view.dispose();
    },
  };
}
