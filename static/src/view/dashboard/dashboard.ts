/** The charts of GPUs and of the machine, on one axis of time. */

import type { Band, Pin } from '../../chart/chart';
import { isOnDark } from '../../lib/colour';
import { h, keyed, setAttribute, setShown, setText } from '../../lib/dom';
import { PastHolders } from '../../model/dashboard/past-holders';
import { DRAWN, sectionsOf, type Holder, type Section } from '../../model/dashboard/plots';
import { isHeld, moved, rangeOf, running, toggledHold, zoomed, type DashboardState } from '../../model/dashboard/state';
import { runLabel } from '../../model/cell-log';
import { marksByGpu } from '../../model/event';
import { gpusOf } from '../../model/gpu';
import { holderRows, kernelHolder } from '../../model/holders';
import { noticeOf, statusOf } from '../../model/status';
import type { FeedReader } from '../../model/feed';
import type { Store } from '../../model/store';
import { summaryOf } from '../../model/summary';
import { Header } from '../header';
import { WIDE_PX } from '../layout';
import { Moment } from '../moment';
import { Notice } from '../notice';
import { colourOf, readPalette, type Palette } from '../palette';
import { DashboardBar } from './bar';
import { CellTable } from './cell-table';
import { PlotView, type PlotContext } from './plot';

export interface DashboardOptions {
  title: string;
  connectingMessage: string;
  state: DashboardState;
  /** Buttons for the head. */
  actions: readonly HTMLElement[];
  /** Something else is shown, and may be remembered. */
  onState: (state: DashboardState) => void;
  invalidate: () => void;
  onRetry: () => void;
}

/** Nobody can take in more at 50 samples a second. */
const TRACED_GPUS = 2;
const STEP = 0.25;

export class Dashboard {
  readonly element = h('div', { class: 'gpumon gpumon-dashboard', 'data-testid': 'gpumon-dashboard', tabindex: '0' });
  private readonly moment: Moment;
  private readonly header: Header;
  private readonly bar: DashboardBar;
  private readonly notice = new Notice();
  private readonly list = h('div', { class: 'gpumon-plot-sections' });
  private readonly sections = new Map<string, SectionView>();
  private readonly past = new PastHolders();
  private readonly cells: CellTable;
  private readonly screen: IntersectionObserver | null;
  private readonly sizes: ResizeObserver | null;
  private state: DashboardState;
  private palette: Palette | null = null;

  constructor(
    private readonly store: Store,
    private readonly reader: FeedReader,
    private readonly options: DashboardOptions,
  ) {
    this.state = options.state;
    this.moment = new Moment(options.invalidate);
    this.header = new Header({
      title: options.title,
      actions: options.actions,
      onRetry: options.onRetry,
      onSpan: null,
    });
    this.bar = new DashboardBar(this.state, (state) => {
      this.show(state);
    });
    this.cells = new CellTable(options.invalidate);
    this.element.append(this.header.element, this.bar.element, this.notice.element, this.list, this.cells.element);
    this.element.addEventListener('keydown', (event) => {
      this.onKey(event);
    });
    reader.setMetrics(DRAWN);
    this.screen =
      typeof IntersectionObserver === 'undefined'
        ? null
        : new IntersectionObserver((entries) => {
            this.scrolled(entries);
          });
    this.sizes =
      typeof ResizeObserver === 'undefined'
        ? null
        : new ResizeObserver(() => {
            setAttribute(this.element, 'data-layout', this.element.clientWidth < WIDE_PX ? 'compact' : 'wide');
          });
    this.sizes?.observe(this.element);
    this.follow();
  }

  /** Shows something else. */
  show(state: DashboardState): void {
    this.state = state;
    this.follow();
    this.options.onState(state);
    this.options.invalidate();
  }

  render(): void {
    const { store, state } = this;
    const now_ms = store.clock.now();
    const status = statusOf(store, Date.now());
    const gpus = gpusOf(store.inventory, store.sample, store.details);
    const [from_ms, to_ms] = rangeOf(state, now_ms);
    setAttribute(this.element, 'data-gpumon-state', status.state);
    const chosen = gpus.filter(({ index }) => state.gpus?.includes(index) ?? true);
    const summary = chosen.length === 0 ? [] : summaryOf(chosen);
    this.header.update(store, status, summary, 0, this.moment.at_ms);
    this.notice.update(noticeOf(store, status, this.options.connectingMessage), status.level);
    this.bar.update(state, gpus, now_ms);
    this.past.see(holderRows(gpus, store.slots), now_ms);
    this.past.forget(store.timeline.times_ms[0] ?? now_ms);
    const holders = this.past.since(from_ms, now_ms);
    const sections = sectionsOf({ state, gpus, sample: store.sample, holders });
    const window = { times_ms: store.timeline.times_ms, from_ms, to_ms, gap_ms: store.gap_ms };
    const stale = status.state !== 'live';
    const context: PlotContext = {
      timeline: store.timeline,
      traces: store.traces,
      window,
      palette: this.currentPalette(),
      freshness: { now_ms, stale },
      at_ms: this.moment.at_ms ?? (isHeld(state) ? to_ms : null),
    };
    const views = keyed(
      this.list,
      this.sections,
      store.sample === null ? [] : sections,
      ({ key }) => key,
      () => this.newSection(),
      (view) => {
        view.dispose();
      },
    );
    const cells = this.cellBands(context.palette, holders, now_ms);
    const pins = this.pins(context.palette);
    views.forEach((view, i) => {
      const section = sections[i];
      if (section !== undefined) {
        view.update(section, context, cells, pins);
      }
    });
    this.cells.update(store.cells.runs, new Set(chosen.map(({ index }) => index)));
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

  private follow(): void {
    const count = this.state.gpus?.length ?? this.store.inventory?.gpus.length ?? 0;
    this.reader.setTraces(count > 0 && count <= TRACED_GPUS && this.state.arrangement === 'apart');
  }

  private newSection(): SectionView {
    const zoom = {
      onZoom: (a_ms: number, b_ms: number): void => {
        this.show(zoomed(this.state, a_ms, b_ms));
      },
      onReset: (): void => {
        this.show(running(this.state));
      },
    };
    return new SectionView(() => new PlotView(this.moment, this.options.invalidate, zoom), this.screen);
  }

  private pins({ levels }: Palette): Map<number, Pin[]> {
    const pins = [...marksByGpu(this.store.events)].map(([gpu, marks]): [number, Pin[]] => [
      gpu,
      marks.map(({ at_ms, level }) => ({ at_ms, colour: levels[level] })),
    ]);
    return new Map(pins);
  }

  /** The runs of cells on each GPU, in the colour of their notebook. */
  private cellBands(
    palette: Palette,
    holders: ReadonlyMap<number, readonly Holder[]>,
    now_ms: number,
  ): Map<number, Band[]> {
    const bands = new Map<number, Band[]>();
    for (const { kernelId, count, running: runs, cost } of this.store.cells.runs) {
      for (const gpu of cost.gpus) {
        const holder = holders.get(gpu)?.find((one) => one.holder === kernelHolder(kernelId));
        const colour = colourOf(palette, holder?.slot ?? 'text');
        const to_ms = runs ? now_ms : cost.ended_ms;
        bands.set(gpu, [
          ...(bands.get(gpu) ?? []),
          { from_ms: cost.started_ms, to_ms, colour, label: runLabel(count) },
        ]);
      }
    }
    return bands;
  }

  private currentPalette(): Palette {
    if (this.palette === null) {
      setAttribute(this.element, 'data-gpumon-scheme', isOnDark(this.element) ? 'dark' : 'light');
      this.palette = readPalette(this.element);
    }
    return this.palette;
  }

  private scrolled(entries: readonly IntersectionObserverEntry[]): void {
    for (const entry of entries) {
      for (const section of this.sections.values()) {
        section.scrolled(entry.target, entry.isIntersecting);
      }
    }
    this.options.invalidate();
  }

  /** Arrows move through the past, space holds time still, Escape returns to now. */
  private onKey(event: KeyboardEvent): void {
    const now_ms = this.store.clock.now();
    if (event.target !== this.element || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const { key } = event;
    if (key === 'ArrowLeft' || key === 'ArrowRight') {
      this.show(moved(this.state, key === 'ArrowLeft' ? -STEP : STEP, now_ms));
    } else if (key === ' ') {
      this.show(toggledHold(this.state, now_ms));
    } else if (key === 'Escape' && isHeld(this.state)) {
      this.show(running(this.state));
    } else {
      return;
    }
    event.preventDefault();
  }
}

/** Charts that belong together, under their heading. */
class SectionView {
  readonly element: HTMLElement;
  private readonly heading = h('h2', { class: 'gpumon-heading' });
  private readonly grid = h('div', { class: 'gpumon-plots' });
  private readonly missing = h('p', { class: 'gpumon-missing' });
  private readonly plots = new Map<string, PlotView>();

  constructor(
    private readonly make: () => PlotView,
    private readonly screen: IntersectionObserver | null,
  ) {
    this.element = h('section', {}, this.heading, this.grid, this.missing);
  }

  update(
    section: Section,
    context: PlotContext,
    cells: ReadonlyMap<number, readonly Band[]>,
    pins: ReadonlyMap<number, readonly Pin[]>,
  ): void {
    setText(this.heading, section.title);
    setAttribute(this.element, 'data-section', section.key);
    const views = keyed(
      this.grid,
      this.plots,
      section.plots,
      ({ key }) => key,
      () => this.newPlot(),
      (view) => {
        this.screen?.unobserve(view.element);
        view.dispose();
      },
    );
    const healthy = section.gpu === null || section.gpu.now?.health.state === 'ok';
    const own = { ...context, freshness: { ...context.freshness, stale: context.freshness.stale || !healthy } };
    section.plots.forEach((plot, i) => {
      const of = plot.gpu ?? -1;
      views[i]?.update(plot, own, cells.get(of) ?? [], pins.get(of) ?? []);
    });
    setShown(this.missing, section.missing.length > 0);
    setText(this.missing, `Not on this board or driver: ${section.missing.join(', ')}.`);
  }

  scrolled(target: Element, onScreen: boolean): void {
    for (const plot of this.plots.values()) {
      if (plot.element === target) {
        plot.onScreen = onScreen;
      }
    }
  }

  revealAll(): void {
    for (const plot of this.plots.values()) {
      plot.onScreen = true;
    }
  }

  setPalette(palette: Palette): void {
    for (const plot of this.plots.values()) {
      plot.setPalette(palette);
    }
  }

  dispose(): void {
    for (const plot of this.plots.values()) {
      this.screen?.unobserve(plot.element);
      plot.dispose();
    }
  }

  private newPlot(): PlotView {
    const plot = this.make();
    this.screen?.observe(plot.element);
    return plot;
  }
}
