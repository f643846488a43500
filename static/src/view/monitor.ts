/** Puts the view into a page, fed by a connection to a gpumon server. */

import { FrameLoop } from '../lib/frame-loop';
import type { Feed } from '../model/feed';
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
}

export interface Monitor {
  /** Nobody sees the view, or somebody does again: draws nothing meanwhile, and asks for nothing. */
  setVisible: (visible: boolean) => void;
  /** The colours around the view have changed. */
  themeChanged: () => void;
  /** Leaves the feed and takes the view away; calling it again does nothing. */
  dispose: () => void;
}

/** Without frames, ages and countdowns still run. */
const TICK_MS = 1000;

/** Shows the GPUs of a server inside `host`. */
export function mountMonitor(host: HTMLElement, options: MonitorOptions): Monitor {
  const { feed } = options;
  let visible = true;
  let looking = true;
  let disposed = false;
  let drawn_ms = 0;

  const overview = new Overview(feed.store, {
    title: options.title ?? 'GPUs',
    connectingMessage: options.connectingMessage ?? 'Waiting for gpumon to answer.',
    actions: options.actions ?? [],
    notebooks: options.notebooks ?? null,
    invalidate: () => {
      loop.invalidate();
    },
    onRetry: () => {
      feed.retryNow();
    },
  });
  const loop: FrameLoop = new FrameLoop(() => {
    drawn_ms = performance.now();
    overview.render();
  });
  const reader = feed.join({
    changed: () => {
      loop.invalidate();
    },
  });

  const look = (): void => {
    const now = visible && !document.hidden;
    if (now === looking) {
      return;
    }
    looking = now;
    loop.setRunning(looking);
    reader.setLooking(looking);
    if (looking) {
      loop.invalidate();
    }
  };

  const ticker = setInterval(() => {
    if (performance.now() - drawn_ms > 0.9 * TICK_MS) {
      loop.invalidate();
    }
  }, TICK_MS);
  document.addEventListener('visibilitychange', look);
  host.append(overview.element);
  loop.setRunning(true);
  look();
  loop.invalidate();

  return {
    setVisible: (now) => {
      visible = now;
      look();
    },
    themeChanged: () => {
      overview.themeChanged();
    },
    dispose: () => {
      if (disposed) {
        return;
      }
      disposed = true;
      clearInterval(ticker);
      document.removeEventListener('visibilitychange', look);
      loop.setRunning(false);
      reader.leave();
      overview.dispose();
    },
  };
}
