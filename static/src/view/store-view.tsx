import { liveInterval_ms } from '../lib/frame-loop';
import { memoizeLast } from '../lib/remembered';
import { trans } from '../lib/translation';
import type { GpuState } from '../model/gpu';
import { isFresh, noticeOf, statusOf, type Status } from '../model/status';
import type { Diagnosis, Store } from '../model/store';
import { summaryOf, type SummaryContext } from '../model/summary';
import { ComponentView } from './component-view';
import { eventMarkers } from './event-markers';
import type { HeadAction } from './head-action';
import type { NotebookHost } from './notebook-host';

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

/** The content of a view's header. */
export interface Head {
  status: Status;
  notice: Diagnosis | null;
  summary: readonly string[];
  at_ms: number | null;
}

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

  /** The series and gap length of the charts, from which past values are read. */
  protected get chartedPast(): Pick<SummaryContext, 'timeline' | 'gap_ms'> {
    return this.store;
  }

  /**
   * Returns the content of the header. The summary of `gpus` omits alerts if `withoutAlerts` is
   * set.
   */
  protected head(gpus: readonly GpuState[], withoutAlerts = false): Head {
    const { store, options } = this;
    const status = statusOf(store, Date.now(), liveInterval_ms());
    const notice = noticeOf(
      store,
      status,
      options.connectingMessage ?? trans.__('Waiting for gpumon.'),
    );
    const { at_ms } = this.cursor;
    // For the current time, the store is used, because it has the latest data about busy GPUs.
    const { timeline, gap_ms } = at_ms === null ? store : this.chartedPast;
    const isPast = at_ms !== null;
    const moment = { at_ms: at_ms ?? store.clock.now(), isPast, timeline, gap_ms, withoutAlerts };
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
