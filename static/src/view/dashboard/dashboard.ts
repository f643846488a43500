/** The charts of GPUs and of the machine, on one axis of time. */

import { isOnDark } from '../../lib/color';
import { h, keyed, setAttribute } from '../../lib/dom';
import { PastHolders } from '../../model/dashboard/past-holders';
import { DRAWN, sectionsOf } from '../../model/dashboard/plots';
import {
  isPaused,
  moved,
  rangeOf,
  resumed,
  togglePaused,
  zoomed,
  type DashboardState,
} from '../../model/dashboard/state';
import { gpusOf } from '../../model/gpu';
import { holderRows } from '../../model/holders';
import { noticeOf, statusOf } from '../../model/status';
import type { Subscription } from '../../model/feed';
import type { Store } from '../../model/store';
import { summaryOf } from '../../model/summary';
import { Header } from '../header';
import { WIDE_PX } from '../layout';
import { Cursor } from '../cursor';
import type { NotebookHost } from '../notebook-host';
import { Notice } from '../notice';
import { readPalette, type Palette } from '../palette';
import { EventMarkers } from '../event-markers';
import { runBands } from '../run-bands';
import { bandsOf } from './bands';
import { DashboardBar } from './bar';
import { CellTable } from './cell-table';
import { PlotView, type PlotContext } from './plot';
import { SectionView } from './section';

export interface DashboardOptions {
  title: string;
  connectingMessage: string;
  state: DashboardState;
  /** `null` where nobody knows about notebooks. */
  notebooks: NotebookHost | null;
  /** Buttons for the head. */
  actions: readonly HTMLElement[];
  /** Something else is shown, and may be remembered. */
  onState: (state: DashboardState) => void;
  invalidate: () => void;
  onRetry: () => void;
}

/** The most GPUs for which 50 samples a second are drawn. */
const TRACED_GPUS = 2;
const STEP = 0.25;

export class Dashboard {
  readonly element = h('div', { class: 'gpumon gpumon-dashboard', 'data-testid': 'gpumon-dashboard', tabindex: '0' });
  private readonly cursor: Cursor;
  private readonly header: Header;
  private readonly bar: DashboardBar;
  private readonly notice = new Notice();
  private readonly list = h('div', { class: 'gpumon-plot-sections' });
  private readonly sections = new Map<string, SectionView>();
  private readonly past = new PastHolders();
  private readonly markers = new EventMarkers();
  private readonly cells: CellTable;
  private readonly screen: IntersectionObserver | null;
  private readonly sizes: ResizeObserver | null;
  private state: DashboardState;
  private palette: Palette | null = null;
  private traced = false;

  constructor(
    private readonly store: Store,
    private readonly subscription: Subscription,
    private readonly options: DashboardOptions,
  ) {
    this.state = options.state;
    this.cursor = new Cursor(options.invalidate);
    this.header = new Header({
      title: options.title,
      actions: options.actions,
      onRetry: options.onRetry,
      onSpan: null,
    });
    this.bar = new DashboardBar(this.state, (state) => this.show(state));
    this.cells = new CellTable(options.invalidate, options.notebooks);
    setAttribute(this.element, 'role', 'region');
    setAttribute(this.element, 'aria-label', options.title);
    this.element.append(this.header.element, this.bar.element, this.notice.element, this.list, this.cells.element);
    this.element.addEventListener('keydown', (event) => this.onKey(event));
    subscription.setMetrics(DRAWN);
    this.screen =
      typeof IntersectionObserver === 'undefined'
        ? null
        : new IntersectionObserver((entries) => this.scrolled(entries));
    this.sizes =
      typeof ResizeObserver === 'undefined'
        ? null
        : new ResizeObserver(() =>
            setAttribute(this.element, 'data-layout', this.element.clientWidth < WIDE_PX ? 'compact' : 'wide'),
          );
    this.sizes?.observe(this.element);
  }

  /** Shows something else. */
  show(state: DashboardState): void {
    this.state = state;
    this.options.onState(state);
    this.options.invalidate();
  }

  render(whole = true): void {
    const { store, state } = this;
    const now_ms = store.clock.now();
    const status = statusOf(store, Date.now());
    const gpus = gpusOf(store.inventory, store.sample, store.details);
    this.updateTraces();
    const [from_ms, to_ms] = rangeOf(state, now_ms);
    setAttribute(this.element, 'data-gpumon-state', status.state);
    const chosen = gpus.filter(({ index }) => state.gpus?.includes(index) ?? true);
    const summary = chosen.length === 0 ? [] : summaryOf(chosen);
    this.header.update(store, status, summary, 0, this.cursor.at_ms);
    this.notice.update(noticeOf(store, status, this.options.connectingMessage), status.level);
    this.bar.update(state, gpus, now_ms);
    this.past.record(holderRows(gpus, store.slots), now_ms);
    this.past.prune(store.timeline.times_ms[0] ?? now_ms);
    const holders = this.past.since(from_ms, now_ms);
    const sections = sectionsOf({ state, gpus, sample: store.sample, holders });
    const { timeline } = store;
    const window = { times_ms: timeline.times_ms, revision: timeline.revision, from_ms, to_ms, gap_ms: store.gap_ms };
    const stale = status.state !== 'live';
    const context: PlotContext = {
      timeline,
      traces: store.traces,
      window,
      palette: this.currentPalette(),
      freshness: { now_ms, stale },
      at_ms: this.cursor.at_ms ?? (isPaused(state) ? to_ms : null),
    };
    const views = keyed(
      this.list,
      this.sections,
      store.sample === null ? [] : sections,
      ({ key }) => key,
      () => this.newSection(),
      (view) => view.dispose(),
    );
    views.forEach((view, i) => {
      const section = sections[i];
      if (section !== undefined) {
        view.update(section, context);
      }
    });
    const { runs } = store.cells;
    if (whole) {
      this.cells.update(runs, new Set(chosen.map(({ index }) => index)));
    }
    const annotations = {
      bands: bandsOf(runs, context.palette, holders, now_ms, runBands(store.events, context.palette, now_ms)),
      markers: this.markers.byGpu(store.events, context.palette),
    };
    views.forEach((view, i) => {
      const section = sections[i];
      if (section !== undefined) {
        view.draw(section, context, annotations);
      }
    });
  }

  themeChanged(): void {
    this.palette = null;
    const palette = this.currentPalette();
    for (const section of this.sections.values()) {
      section.setPalette(palette);
    }
    this.options.invalidate();
  }

  revealAll(): void {
    for (const section of this.sections.values()) {
      section.revealAll();
    }
  }

  dispose(): void {
    this.screen?.disconnect();
    this.sizes?.disconnect();
    for (const section of this.sections.values()) {
      section.dispose();
    }
    this.element.remove();
  }

  /** Requests the driver's own records, where there are few enough GPUs. */
  private updateTraces(): void {
    const count = this.state.gpus?.length ?? this.store.inventory?.gpus.length ?? 0;
    const traced = count > 0 && count <= TRACED_GPUS && this.state.layout === 'apart';
    if (traced !== this.traced) {
      this.traced = traced;
      this.subscription.setTraces(traced);
    }
  }

  private newSection(): SectionView {
    const zoom = {
      onZoom: (a_ms: number, b_ms: number): void => this.show(zoomed(this.state, a_ms, b_ms)),
      onReset: (): void => this.show(resumed(this.state)),
    };
    return new SectionView(() => new PlotView(this.cursor, this.options.invalidate, zoom), this.screen);
  }

  private currentPalette(): Palette {
    if (this.palette === null) {
      setAttribute(this.element, 'data-gpumon-scheme', isOnDark(this.element) ? 'dark' : 'light');
      this.palette = readPalette(this.element);
    }
    return this.palette;
  }

  /** Only what was scrolled into view is drawn, so that scrolling stays smooth. */
  private scrolled(entries: readonly IntersectionObserverEntry[]): void {
    for (const entry of entries) {
      for (const section of this.sections.values()) {
        section.scrolled(entry.target, entry.isIntersecting);
      }
    }
  }

  /** Arrows move through the past, space pauses, Escape returns to live. */
  private onKey(event: KeyboardEvent): void {
    const now_ms = this.store.clock.now();
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const { key } = event;
    if (key === 'ArrowLeft' || key === 'ArrowRight') {
      this.show(moved(this.state, key === 'ArrowLeft' ? -STEP : STEP, now_ms));
    } else if (key === ' ') {
      this.show(togglePaused(this.state, now_ms));
    } else if (key === 'Escape' && isPaused(this.state)) {
      this.show(resumed(this.state));
    } else {
      return;
    }
    event.preventDefault();
  }
}
