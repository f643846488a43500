/** The whole view, from the head to the machine; it shows what the store holds. */

import { h, setShown } from '../lib/dom';
import { firingAlerts } from '../model/firing-alert';
import { gpusOf } from '../model/gpu';
import { holderRows } from '../model/holders';
import { isFresh } from '../model/status';
import type { Store } from '../model/store';
import { AlertList } from './alert-list';
import { Announcer } from './announcer';
import { EventList } from './event-list';
import { GpuList } from './gpu-list';
import { Header, nextSpan } from './header';
import { HolderTable } from './holder-table';
import { HostStrip } from './host-strip';
import { runBands } from './run-bands';
import { RunEntry, type Runner } from './run-entry';
import { StoreView, type ViewContext, type ViewOptions } from './store-view';
import type { TourTargets } from './tour';
import { TourEntry } from './tour-entry';
import { Visibility } from './visibility';

export interface OverviewOptions extends ViewOptions {
  /** Opens the charts of a GPU; without it, that is not possible. */
  onOpenGpu?: (index: number) => void;
  /** How much of the past the lines show at first. */
  spanMinutes?: number;
  /** Whether whoever sees this for the first time is shown around. */
  tour?: boolean;
}

let overviews = 0;

export class Overview extends StoreView {
  protected readonly header: Header;
  private readonly runs: RunEntry | null;
  private readonly announcer = new Announcer();
  /** Those of the machine; those of a GPU are on its card. */
  private readonly alerts = new AlertList();
  private readonly list: GpuList;
  private readonly holders: HolderTable;
  private readonly events: EventList;
  private readonly host = new HostStrip();
  private spanMin: number;
  private readonly tour: TourEntry;
  private readonly holdersVisibility = new Visibility();

  /** Without a `runner`, nothing can be run. */
  constructor(
    store: Store,
    protected override readonly options: OverviewOptions & ViewContext,
    runner: Runner | null = null,
  ) {
    super(
      h('div', { class: 'gpumon', tabindex: '-1', 'data-testid': 'gpumon' }),
      store,
      options,
      '100px',
    );
    this.spanMin = options.spanMinutes ?? 2;
    this.runs = runner === null ? null : new RunEntry(store, runner, options.invalidate);
    this.header = new Header({
      ...options,
      request: runner?.request,
      actions: [...(this.runs === null ? [] : [this.runs.button]), ...(options.actions ?? [])],
      onSpan: () => {
        this.spanMin = nextSpan(this.spanMin);
        options.invalidate();
      },
    });
    this.list = new GpuList(`gpumon-${(overviews += 1)}`, this.cursor, this.screen, options);
    this.holders = new HolderTable(
      options.invalidate,
      (row) => this.list.highlight(row),
      options.notebooks,
    );
    this.events = new EventList(options.invalidate);
    this.tour = new TourEntry(this.element, () => this.tourTargets(), options.tour === true);
    this.element.append(
      this.header.element,
      this.announcer.element,
      this.notice.element,
      ...(this.runs === null ? [] : [this.runs.element]),
      this.alerts.element,
      this.list.element,
      this.holders.element,
      this.events.element,
      this.host.element,
    );
    this.screen.observe(this.holders.element, (onScreen) => {
      this.holdersVisibility.onScreen = onScreen;
      options.invalidate();
    });
  }

  render(): void {
    const { store } = this;
    const { sample } = store;
    const now_ms = store.clock.now();
    const gpus = gpusOf(store.inventory, sample, store.details);
    const { status, notice } = this.renderHead(gpus, this.spanMin);
    const freshness = { now_ms, stale: !isFresh(status) };
    const ofMachine = firingAlerts(store.firing, null, now_ms);
    this.alerts.update(ofMachine.length > 0 ? ofMachine : null);
    this.announcer.update(status, notice, gpus, store.firing, now_ms);
    this.runs?.render(gpus, freshness);
    const rows = holderRows(gpus, store.slots, this.options.notebooks?.pathOf);
    const context = {
      store,
      window: store.window(now_ms - this.spanMin * 60_000, now_ms),
      palette: this.currentPalette(),
      markers: this.markers(store.events, this.currentPalette()),
      bands: runBands(store.events, this.currentPalette(), now_ms),
      openByDefault: this.wide,
    };
    const shown = this.list.update(gpus, rows, now_ms, context);
    setShown(this.holders.element, sample !== null);
    setShown(this.host.element, sample !== null);
    setShown(this.events.element, sample !== null || store.events.length > 0);
    this.events.update(store.events, sample, gpus, now_ms);
    if (sample !== null) {
      if (!this.holdersVisibility.skips(now_ms)) {
        this.holders.update(shown.rows, rows, freshness);
      }
      this.host.update(sample.host, freshness);
      this.tour.ready();
    }
  }

  showTour(): void {
    this.tour.request();
    this.options.invalidate();
  }

  showBenchmarks(): void {
    this.runs?.open();
  }

  revealAll(): void {
    this.holdersVisibility.onScreen = true;
    this.list.revealAll();
  }

  override dispose(): void {
    super.dispose();
    this.list.dispose();
  }

  private tourTargets(): TourTargets {
    return {
      gpus: this.element.querySelector('[data-gpu-index]'),
      holders: this.holders.element,
      // A row has no room for the button.
      charts: this.element.querySelector('.gpumon-gpu:not([data-row]) .gpumon-open'),
      benchmarks: this.runs?.button ?? null,
    };
  }
}
