/** What every view of a store has: a head, a notice, a cursor, the colors around it, and its place on the screen. */

import { isOnDark } from '../lib/color';
import { setAttribute } from '../lib/dom';
import { remembered } from '../lib/remembered';
import { observeWidth, ScreenObserver } from '../lib/screen';
import { trans } from '../lib/translation';
import type { GpuState } from '../model/gpu';
import { noticeOf, statusOf, type Status } from '../model/status';
import type { Diagnosis, Store } from '../model/store';
import { summaryOf, type Moment } from '../model/summary';
import { Cursor } from './cursor';
import { eventMarkers } from './event-markers';
import { Header } from './header';
import type { View } from './mount';
import type { NotebookHost } from './notebook-host';
import { Notice } from './notice';
import { readPalette, type Palette } from './palette';

/** What whoever embeds a view chooses. */
export interface ViewOptions {
  title: string;
  /** What to say until the first answer. */
  connectingMessage?: string;
  actions?: readonly HTMLElement[];
  /** What can be done with notebooks, where the view stands beside them. */
  notebooks?: NotebookHost;
}

/** What a view can ask of where it is mounted. */
export interface ViewContext {
  invalidate: () => void;
  onRetry: () => void;
}

/** From this width on there is room for cards side by side, and for a user's column. */
const WIDE_PX = 560;

/** What the head of a view says. */
interface Head {
  status: Status;
  notice: Diagnosis | null;
}

export abstract class StoreView implements View {
  protected readonly cursor: Cursor;
  protected readonly notice = new Notice();
  /** Events are rare beside drawings. */
  protected readonly markers = remembered(eventMarkers);
  protected readonly screen: ScreenObserver;
  protected wide = false;
  protected abstract readonly header: Header;
  private palette: Palette | null = null;
  private readonly stopWidth: () => void;

  constructor(
    readonly element: HTMLElement,
    protected readonly store: Store,
    protected readonly options: ViewOptions & ViewContext,
    screenMargin?: string,
  ) {
    this.cursor = new Cursor(options.invalidate);
    this.screen = new ScreenObserver(screenMargin);
    this.stopWidth = observeWidth(element, (width_px) => {
      if (this.wide !== width_px >= WIDE_PX) {
        this.wide = !this.wide;
        options.invalidate();
      }
    });
  }

  abstract render(): void;
  abstract revealAll(): void;

  themeChanged(): void {
    this.palette = null;
    this.options.invalidate();
  }

  dispose(): void {
    this.stopWidth();
    this.screen.disconnect();
    this.element.remove();
  }

  /** What the charts show of the past. */
  protected get seen(): Pick<Moment, 'timeline' | 'gap_ms'> {
    return this.store;
  }

  /** Writes the head, which sums up `gpus`, and the notice. */
  protected renderHead(
    gpus: readonly GpuState[],
    spanMin: number,
    paused: readonly [from: string, to: string] | null = null,
  ): Head {
    const { store, options } = this;
    const status = statusOf(store, Date.now());
    const notice = noticeOf(
      store,
      status,
      options.connectingMessage ?? trans.__('Waiting for gpumon.'),
    );
    setAttribute(this.element, 'data-gpumon-state', status.state);
    setAttribute(this.element, 'data-layout', this.wide ? 'wide' : 'compact');
    const { at_ms } = this.cursor;
    // What is busy now, the stream says best.
    const { timeline, gap_ms } = at_ms === null ? store : this.seen;
    const moment = { at_ms: at_ms ?? store.clock.now(), isPast: at_ms !== null, timeline, gap_ms };
    setAttribute(this.element, 'data-past', moment.isPast ? '' : null);
    this.header.update(
      store,
      status,
      gpus.length === 0 ? [] : summaryOf(gpus, moment),
      spanMin,
      at_ms,
      paused,
    );
    this.notice.update(notice, status.level);
    return { status, notice };
  }

  /** The style sheet has light and dark colors of its own; which of them fit is told by what lies behind. */
  protected currentPalette(): Palette {
    if (this.palette === null) {
      setAttribute(this.element, 'data-gpumon-scheme', isOnDark(this.element) ? 'dark' : 'light');
      this.palette = readPalette(this.element);
    }
    return this.palette;
  }
}
