/**
 * A view of the GPUs of a store, and the mounting of views on a page. A visible view is rendered
 * after changes.
 */

import { groupBy } from '../lib/collections';
import { liveInterval_ms, FrameLoop } from '../lib/frame-loop';
import { memoizeLast } from '../lib/memoize';
import { trans } from '../lib/translation';
import { gpuAlerts, type Alert } from '../model/alerts';
import type { Level } from '../model/describe';
import type { Feed, Subscription } from '../model/feed';
import type { GpuState } from '../model/gpu';
import { holderRows } from '../model/holders';
import { isFresh, noticeOf, statusOf } from '../model/status';
import type { Store } from '../model/store';
import { summaryOf, type SummaryContext } from '../model/summary';
import { eventMarkers } from './chart-marks';
import { ComponentView } from './component-view';
import type { HeadAction } from './menu';
import type { NotebookHost } from './notebook';

/** The options of the embedding page or application. */
export interface ViewOptions {
  title: string;
  /** The message that is shown before the server has responded. */
  connectingMessage?: string;
  /** Returns further actions for the header. Called for each frame. */
  actions?: () => readonly HeadAction[];
  /** The interface to notebooks, if the embedding application has notebooks. */
  notebooks?: NotebookHost;
}

/** The functions that the mounted view may call. */
export interface ViewContext {
  invalidate: () => void;
  onRetry: () => void;
}

/**
 * The minimum width of the wide layout, which places cards side by side and shows a column for
 * users.
 */
const WIDE_PX = 560;

/** A view of the GPUs of a store. */
export abstract class StoreView extends ComponentView {
  /**
   * Computes the markers only when the events change, because events are rare compared with frames.
   */
  protected readonly markers = memoizeLast(eventMarkers);

  constructor(
    element: HTMLElement,
    protected readonly store: Store,
    protected readonly options: ViewOptions & ViewContext,
    screenMargin?: string,
  ) {
    super(element, options.invalidate, screenMargin);
  }

  protected get isWide(): boolean {
    return this.width_px >= WIDE_PX;
  }

  /** Returns the rows of all holders, and the alerts of each GPU, the most severe first. */
  protected listHoldersAndAlerts(gpus: readonly GpuState[], now_ms: number) {
    const { store, options } = this;
    const rows = holderRows(gpus, store.slots, options.notebooks?.pathOf);
    const holders = groupBy(
      rows.filter((row) => row.kind === 'holder'),
      ({ gpu }) => gpu,
    );
    const alerts = new Map<number | null, Alert[]>(
      gpus.map((gpu) => [gpu.index, gpuAlerts(gpu, holders.get(gpu.index) ?? [], store, now_ms)]),
    );
    const levelOf = ({ index }: GpuState): Level => alerts.get(index)?.[0]?.level ?? 'none';
    return { rows, holders, alerts, levelOf };
  }

  /**
   * Returns the content of the header. The summary of `gpus` omits alerts, which have buttons. Past
   * values are read from the time series of `past`.
   */
  protected makeHead(
    gpus: readonly GpuState[],
    past: Pick<SummaryContext, 'timeline' | 'gap_ms'> = this.store,
  ) {
    const { store, options } = this;
    const status = statusOf(store, Date.now(), liveInterval_ms());
    const notice = noticeOf(
      store,
      status,
      options.connectingMessage ?? trans.__('Waiting for gpumon.'),
    );
    const { at_ms } = this.cursor;
    // For the current time, the store is used, because it has the latest data about busy GPUs.
    const { timeline, gap_ms } = at_ms === null ? store : past;
    const isPast = at_ms !== null;
    const moment = { at_ms: at_ms ?? store.clock.now(), isPast, timeline, gap_ms };
    this.setAttributes({
      'data-gpumon-state': status.state,
      'data-layout': this.isWide ? 'wide' : 'compact',
      'data-outdated': isFresh(status) ? null : '',
      'data-past': isPast ? '' : null,
    });
    const summary = gpus.length === 0 ? [] : summaryOf(gpus, moment);
    return { status, notice, summary, at_ms };
  }
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

/**
 * If no sample arrives for this long, the view is rendered anyway, to update ages and countdowns.
 */
const TICK_MS = 1100;

export function mountView<V extends ComponentView>(
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
      // A `details` frame does not request a drawing, because slow readings are drawn together with
      // the next sample.
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
    view.renderOffscreenParts();
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
