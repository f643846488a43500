/** The fleet in a page or a widget. */

import { FrameLoop } from '../../lib/frame-loop';
import { loadXids } from '../../model/xid';
import { Reader } from '../../model/fleet/reader';
import { addressOf, shownIn } from '../../model/fleet/state';
import type { Request } from '../../model/request';
import type { HeadAction } from '../head-action';
import { FleetView } from './fleet-view';
import type { NodeOpener } from './scene';

export { nodePath } from './scene';

export interface FleetOptions {
  title: string;
  request: Request;
  /** More actions in the head; called with each rendering. */
  actions?: () => readonly HeadAction[];
  opener: NodeOpener;
  /** The part of an address with the view and its choices. */
  address: string;
  /** Called when something else is shown; `address` brings it back. */
  onAddress: (address: string) => void;
  /** Called before a node opens, perhaps in place of the fleet. */
  onLeave?: () => void;
  /** Called when the user has to sign in first. */
  onRefused?: () => void;
}

export interface MountedFleet {
  setVisible: (visible: boolean) => void;
  /** Renders everything again, such as after a change of units. */
  invalidate: () => void;
  themeChanged: () => void;
  /** Shows what another address says. */
  show: (address: string) => void;
  /** Scrolls there as soon as there is something to see. */
  scrollTo: (top: number) => void;
  /** Reads everything at once. */
  retry: () => void;
  dispose: () => void;
}

/** Ages of data change even if no data arrives. */
const TICK_MS = 5000;
/** Each typed letter changes the address; browsers accept only a few changes per second. */
const ADDRESS_MS = 300;

export function mountFleet(host: HTMLElement, options: FleetOptions): MountedFleet {
  const loop = new FrameLoop(() => {
    view.render();
    // Requests are sent after the rendering, which would otherwise wait for them.
    reader.want(view.listWishes());
  });
  const invalidate = (): void => loop.invalidate();
  const reader = new Reader(options.request, invalidate, options.onRefused);
  let saving: ReturnType<typeof setTimeout> | undefined;
  let unsaved: string | null = null;
  const save = (): void => {
    clearTimeout(saving);
    if (unsaved !== null) {
      options.onAddress(unsaved);
      unsaved = null;
    }
  };
  const view: FleetView = new FleetView(reader, shownIn(options.address), {
    title: options.title,
    actions: options.actions ?? (() => []),
    opener: options.opener,
    invalidate,
    onShown: (shown) => {
      unsaved = addressOf(shown);
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
  // The meanings of Xids are loaded after the first rendering.
  void loadXids().then(invalidate, () => undefined);
  return {
    setVisible: (now) => {
      visible = now;
      update();
    },
    invalidate,
    themeChanged: () => view.themeChanged(),
    show: (address) => view.show(shownIn(address)),
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
