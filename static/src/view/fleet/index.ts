/** The fleet in a page or a widget. */

import { FrameLoop } from '../../lib/frame-loop';
import { loadXids } from '../../model/xid';
import { Reader } from '../../model/fleet/reader';
import { addressOf, shownIn } from '../../model/fleet/state';
import type { Request } from '../../model/request';
import { FleetView } from './fleet-view';
import type { NodeOpener } from './node-link';

export { nodePath } from './node-link';

export interface FleetOptions {
  title: string;
  request: Request;
  actions?: readonly HTMLElement[];
  opener: NodeOpener;
  /** What to show, as the part of an address that says so. */
  address: string;
  /** Something else is shown; `address` brings it back. */
  onAddress: (address: string) => void;
  /** A node is being opened, perhaps in the place of this. */
  onLeave?: () => void;
  /** Whoever asks has to sign in first. */
  onRefused?: () => void;
}

export interface MountedFleet {
  setVisible: (visible: boolean) => void;
  /** Numbers are written in another way now. */
  invalidate: () => void;
  themeChanged: () => void;
  /** Shows what another address says. */
  show: (address: string) => void;
  /** Scrolls there as soon as there is something to see. */
  scrollTo: (top: number) => void;
  /** Asks the server at once. */
  retry: () => void;
  dispose: () => void;
}

/** Ages go on without news. */
const TICK_MS = 5000;
/** Who types is many addresses; browsers take few of them in a second. */
const ADDRESS_MS = 300;

export function mountFleet(host: HTMLElement, options: FleetOptions): MountedFleet {
  const loop = new FrameLoop(() => {
    view.render();
    // What is asked for now takes time that the picture would have waited for.
    reader.want(view.wishes());
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
    actions: options.actions ?? [],
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
  // What Xids mean is loaded after the first picture.
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
