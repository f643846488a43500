/** The whole view, from the head to the machine; it shows what the store holds. */

import { h, keyed, setAttribute, setShown } from '../lib/dom';
import { isOnDark } from '../lib/color';
import { gpusOf } from '../model/gpu';
import { holderRows, type HolderRow } from '../model/holders';
import { noticeOf, statusOf } from '../model/status';
import type { Store } from '../model/store';
import { summaryOf } from '../model/summary';
import { Announcer } from './announcer';
import { EventList } from './event-list';
import { GpuCard, type CardContext } from './gpu-card';
import { Header, nextSpan } from './header';
import { HolderTable } from './holder-table';
import { HostStrip } from './host-strip';
import { WIDE_PX } from './layout';
import { Cursor } from './cursor';
import type { NotebookHost } from './notebook-host';
import { Notice } from './notice';
import { readPalette, type Palette } from './palette';
import { EventMarkers } from './event-markers';
import { runBands } from './run-bands';
import { RunEntry, type Runner } from './run-entry';
import { Visibility } from './visibility';

/** With more GPUs than this, open cards would hide the overview. */
const OPEN_GPUS = 16;

export interface OverviewOptions {
  title: string;
  connectingMessage: string;
  actions: readonly HTMLElement[];
  /** `null` where nobody knows about notebooks. */
  notebooks: NotebookHost | null;
  /** Opens the charts of a GPU; `null` where that is not possible. */
  onOpenGpu: ((index: number) => void) | null;
  /** How much of the past the lines show at first. */
  spanMinutes: number;
  /** Something has to be drawn anew. */
  invalidate: () => void;
  onRetry: () => void;
  /** How workloads are run; `null` where that is not possible. */
  runner: Runner | null;
}

let overviews = 0;

export class Overview {
  readonly element = h('div', { class: 'gpumon', 'data-testid': 'gpumon' });
  private readonly cursor: Cursor;
  private readonly runs: RunEntry | null;
  private readonly header: Header;
  private readonly announcer = new Announcer();
  private readonly notice = new Notice();
  private readonly cardList = h('div', { class: 'gpumon-gpus' });
  private readonly cards = new Map<string, GpuCard>();
  private readonly holders: HolderTable;
  private readonly events: EventList;
  private readonly host = new HostStrip();
  private readonly sizes: ResizeObserver | null;
  private readonly screen: IntersectionObserver | null;
  private readonly id = `gpumon-${String((overviews += 1))}`;
  private palette: Palette | null = null;
  private readonly markers = new EventMarkers();
  private spanMin: number;
  private readonly holdersVisibility = new Visibility();
  private wide = false;

  constructor(
    private readonly store: Store,
    private readonly options: OverviewOptions,
  ) {
    this.spanMin = options.spanMinutes;
    this.cursor = new Cursor(options.invalidate);
    this.runs = options.runner === null ? null : new RunEntry(store, options.runner, options.invalidate);
    this.header = new Header({
      title: options.title,
      actions: [...(this.runs === null ? [] : [this.runs.button]), ...options.actions],
      onRetry: options.onRetry,
      onSpan: () => {
        this.spanMin = nextSpan(this.spanMin);
        options.invalidate();
      },
    });
    this.holders = new HolderTable((row) => this.highlight(row), options.notebooks);
    this.events = new EventList(options.invalidate);
    this.element.append(
      this.header.element,
      this.announcer.element,
      this.notice.element,
      ...(this.runs === null ? [] : [this.runs.element]),
      this.cardList,
      this.holders.element,
      this.events.element,
      this.host.element,
    );
    // Without a layout, as in a test, there is no size and nothing on the screen, and so no charts.
    this.sizes = typeof ResizeObserver === 'undefined' ? null : new ResizeObserver(() => this.resized());
    this.sizes?.observe(this.element);
    this.screen =
      typeof IntersectionObserver === 'undefined'
        ? null
        : new IntersectionObserver((entries) => this.scrolled(entries), { rootMargin: '100px' });
    this.screen?.observe(this.holders.element);
  }

  render(whole = true): void {
    const { store } = this;
    const status = statusOf(store, Date.now());
    const gpus = gpusOf(store.inventory, store.sample, store.details);
    const now_ms = store.clock.now();
    setAttribute(this.element, 'data-gpumon-state', status.state);
    setAttribute(this.element, 'data-layout', this.wide ? 'wide' : 'compact');
    this.header.update(store, status, gpus.length === 0 ? [] : summaryOf(gpus), this.spanMin, this.cursor.at_ms);
    const notice = noticeOf(store, status, this.options.connectingMessage);
    this.announcer.update(status, notice, gpus, now_ms);
    this.notice.update(notice, status.level);
    this.runs?.render(gpus, { now_ms, stale: status.state !== 'live' });
    const rows = holderRows(gpus, store.slots);
    const palette = this.currentPalette();
    const context: CardContext = {
      store,
      palette,
      markers: this.markers.byGpu(store.events, palette),
      bands: runBands(store.events, palette, now_ms),
      whole,
      openByDefault: this.wide && gpus.length <= OPEN_GPUS,
      window: {
        times_ms: store.timeline.times_ms,
        revision: store.timeline.revision,
        from_ms: now_ms - this.spanMin * 60_000,
        to_ms: now_ms,
        gap_ms: store.gap_ms,
      },
    };
    setAttribute(this.cardList, 'data-many', gpus.length > OPEN_GPUS ? '' : null);
    const cards = keyed(
      this.cardList,
      this.cards,
      gpus,
      (gpu) => String(gpu.index),
      (gpu) => this.newCard(gpu.index),
      (card) => {
        this.screen?.unobserve(card.element);
        card.dispose();
      },
    );
    gpus.forEach((gpu, i) => {
      const held = rows.filter((row): row is HolderRow => row.kind === 'holder' && row.gpu === gpu.index);
      cards[i]?.update(gpu, held, context);
    });
    gpus.forEach((gpu, i) => cards[i]?.draw(gpu, context));
    const sample = store.sample;
    setShown(this.holders.element, sample !== null);
    setShown(this.host.element, sample !== null);
    setShown(this.events.element, sample !== null || store.events.length > 0);
    this.events.update(store.events, sample, now_ms);
    if (sample !== null && whole) {
      const freshness = { now_ms, stale: status.state !== 'live' };
      if (!this.holdersVisibility.skips(now_ms)) {
        this.holders.update(rows, freshness);
      }
      this.host.update(sample.host, freshness);
    }
  }

  /** The colors around the view have changed. */
  themeChanged(): void {
    this.palette = null;
    const palette = this.currentPalette();
    for (const card of this.cards.values()) {
      card.setPalette(palette);
    }
    this.options.invalidate();
  }

  revealAll(): void {
    this.holdersVisibility.onScreen = true;
    for (const card of this.cards.values()) {
      card.reveal(this.currentPalette());
    }
  }

  dispose(): void {
    this.sizes?.disconnect();
    this.screen?.disconnect();
    for (const card of this.cards.values()) {
      card.dispose();
    }
    this.cards.clear();
    this.element.remove();
  }

  private newCard(index: number): GpuCard {
    const card = new GpuCard(index, this.cursor, `${this.id}-gpu-${index}`, this.options);
    this.screen?.observe(card.element);
    return card;
  }

  /** The style sheet has light and dark colors of its own; which of them fit is told by what lies behind. */
  private currentPalette(): Palette {
    if (this.palette === null) {
      setAttribute(this.element, 'data-gpumon-scheme', isOnDark(this.element) ? 'dark' : 'light');
      this.palette = readPalette(this.element);
    }
    return this.palette;
  }

  private highlight(row: HolderRow | null): void {
    for (const [index, card] of this.cards) {
      card.highlight(row !== null && String(row.gpu) === index ? row.key : null);
    }
  }

  private resized(): void {
    const wide = this.element.clientWidth >= WIDE_PX;
    if (wide !== this.wide) {
      this.wide = wide;
      this.options.invalidate();
    }
  }

  /** Only what was scrolled into view is updated, so that scrolling stays smooth. */
  private scrolled(entries: readonly IntersectionObserverEntry[]): void {
    for (const { target, isIntersecting } of entries) {
      if (target === this.holders.element) {
        this.holdersVisibility.onScreen = isIntersecting;
        this.options.invalidate();
      }
      const card = [...this.cards.values()].find(({ element }) => element === target);
      card?.setOnScreen(isIntersecting);
    }
  }
}
