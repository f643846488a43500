import { remembered } from '../lib/remembered';
import { trans } from '../lib/translation';
import type { GpuState } from '../model/gpu';
import { noticeOf, statusOf, type Status } from '../model/status';
import type { Diagnosis, Store } from '../model/store';
import { summaryOf, type Moment } from '../model/summary';
import { ComponentView } from './component-view';
import { eventMarkers } from './event-markers';
import type { HeadAction } from './head-action';
import type { NotebookHost } from './notebook-host';

/** The choices of whoever embeds a view. */
export interface ViewOptions {
  title: string;
  /** The message until the first answer. */
  connectingMessage?: string;
  /** More actions in the head; asked for with each rendering. */
  actions?: () => readonly HeadAction[];
  /** Actions on notebooks, where the view is next to them. */
  notebooks?: NotebookHost;
}

/** What a view can ask of where it is mounted. */
export interface ViewContext {
  invalidate: () => void;
  onRetry: () => void;
}

/** From this width on there is room for cards side by side, and for a user's column. */
const WIDE_PX = 560;

/** What the head of a view shows of the store. */
export interface Head {
  status: Status;
  notice: Diagnosis | null;
  summary: readonly string[];
  at_ms: number | null;
}

/** A view of a store of GPUs. */
export abstract class StoreView extends ComponentView {
  /** Events are rare compared with renderings. */
  protected readonly markers = remembered(eventMarkers);

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

  /** The past that the charts show. */
  protected get seen(): Pick<Moment, 'timeline' | 'gap_ms'> {
    return this.store;
  }

  /** Returns what the head shows, which sums up `gpus`. */
  protected head(gpus: readonly GpuState[]): Head {
    const { store, options } = this;
    const status = statusOf(store, Date.now());
    const notice = noticeOf(
      store,
      status,
      options.connectingMessage ?? trans.__('Waiting for gpumon.'),
    );
    const { at_ms } = this.cursor;
    // The stream knows best which GPUs are busy now.
    const { timeline, gap_ms } = at_ms === null ? store : this.seen;
    const moment = { at_ms: at_ms ?? store.clock.now(), isPast: at_ms !== null, timeline, gap_ms };
    this.setAttributes({
      'data-gpumon-state': status.state,
      'data-layout': this.isWide ? 'wide' : 'compact',
      'data-past': moment.isPast ? '' : null,
    });
    const summary = gpus.length === 0 ? [] : summaryOf(gpus, moment);
    return { status, notice, summary, at_ms };
  }
}
