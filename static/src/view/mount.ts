/** Mounts a view in a page and draws it on changes while it is visible. */

import { FrameLoop } from '../lib/frame-loop';
import type { Feed, Subscription } from '../model/feed';
import type { ViewContext } from './store-view';

export interface View {
  readonly element: HTMLElement;
  render: () => void;
  themeChanged: () => void;
  /** Renders everything once, also what is off the screen. */
  revealAll: () => void;
  dispose: () => void;
}

export interface MountOptions {
  feed: Feed;
  /** The time between two samples; without it, the server's own. */
  interval_ms?: number;
}

export interface Mounted {
  /** Sets whether the view is visible. While it is not, it renders nothing and requests nothing. */
  setVisible: (visible: boolean) => void;
  /** Sets the time between two samples; `null` is the server's own. */
  setInterval: (interval_ms: number | null) => void;
  /** Renders the view, for example after a change of units. */
  invalidate: () => void;
  /** Reads the colors around the view, which have changed. */
  themeChanged: () => void;
  /** Leaves the feed and removes the view; calling it again does nothing. */
  dispose: () => void;
}

/** The time until ages and countdowns are rendered if no sample arrives. */
const TICK_MS = 1100;

export function mountView<V extends View>(
  host: HTMLElement,
  { feed, interval_ms }: MountOptions,
  make: (context: ViewContext, subscription: Subscription) => V,
): Mounted & { view: V } {
  let visible = true;
  let active = true;
  let disposed = false;
  let ticker: ReturnType<typeof setTimeout> | undefined;

  const invalidate = (): void => loop.invalidate();
  const loop: FrameLoop = new FrameLoop(() => {
    clearTimeout(ticker);
    ticker = setTimeout(invalidate, TICK_MS);
    view.render();
  });
  const subscription = feed.subscribe((frame) => {
    if (frame?.type === 'sample' || frame?.type === 'run') {
      loop.invalidateThrottled();
    } else if (frame?.type !== 'details') {
      // Details change slowly, and are rendered with the next sample.
      loop.invalidate();
    }
  });
  subscription.update({ interval_ms: interval_ms ?? null });
  const view = make({ invalidate, onRetry: () => feed.retryNow() }, subscription);

  const updateVisibility = (): void => {
    const now = visible && !document.hidden;
    if (now === active) {
      return;
    }
    active = now;
    loop.setRunning(active);
    subscription.update({ active });
    if (active) {
      loop.invalidate();
    }
  };

  const print = (): void => {
    view.revealAll();
    // The page is printed without another frame.
    view.render();
  };
  document.addEventListener('visibilitychange', updateVisibility);
  window.addEventListener('beforeprint', print);
  host.append(view.element);
  loop.setRunning(true);
  updateVisibility();
  loop.invalidate();

  return {
    view,
    setVisible: (now) => {
      visible = now;
      updateVisibility();
    },
    setInterval: (ms) => subscription.update({ interval_ms: ms }),
    invalidate,
    themeChanged: () => view.themeChanged(),
    dispose: () => {
      if (disposed) {
        return;
      }
      disposed = true;
      clearTimeout(ticker);
      document.removeEventListener('visibilitychange', updateVisibility);
      window.removeEventListener('beforeprint', print);
      loop.setRunning(false);
      subscription.unsubscribe();
      view.dispose();
    },
  };
}
