/** Mounts a view on a page. While the view is visible, it is rendered after changes. */

import { FrameLoop } from '../lib/frame-loop';
import type { Feed, Subscription } from '../model/feed';
import type { ViewContext } from './store-view';

export interface View {
  readonly element: HTMLElement;
  render: () => void;
  themeChanged: () => void;
  /** Renders everything once, including elements off the screen. */
  revealAll: () => void;
  dispose: () => void;
}

export interface MountOptions {
  feed: Feed;
  /** The interval between samples in milliseconds. Without it, the server's interval is used. */
  interval_ms?: number;
}

export interface MountHandle {
  /** Sets whether the view is visible. A hidden view renders nothing and requests nothing. */
  setVisible: (visible: boolean) => void;
  /** Sets the interval between samples in milliseconds. `null` selects the server's interval. */
  setInterval: (interval_ms: number | null) => void;
  /** Renders the view, for example after a change of units. */
  invalidate: () => void;
  /** Reads the colors again after the theme has changed. */
  themeChanged: () => void;
  /** Ends the subscription and removes the view. Further calls do nothing. */
  dispose: () => void;
}

/** The time without samples after which the view is rendered to update ages and countdowns. */
const TICK_MS = 1100;

export function mountView<V extends View>(
  host: HTMLElement,
  { feed, interval_ms }: MountOptions,
  make: (context: ViewContext, subscription: Subscription) => V,
): MountHandle & { view: V } {
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
      // Slow readings (`details`) are rendered together with the next sample.
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
    // The browser prints the page without another frame, so the view must be rendered now.
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
