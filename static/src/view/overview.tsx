/** The overview of all GPUs of a machine, and its mounting on a page. */

import type { ComponentChild } from 'preact';

import { createElement } from '../lib/dom';
import { StoredValue } from '../lib/stored';
import { trans } from '../lib/translation';
import { firingAlerts } from '../model/alerts';
import { commonName, gpusOf } from '../model/gpu';
import {
  filterGpus,
  removeWordsExceptLevels,
  hasLevelWord,
  toggleLevelWord,
  formatOrder,
  GpuSorter,
  orderAfterClick,
  parseOrder,
} from '../model/gpu-list';
import { isFresh } from '../model/status';
import type { Store } from '../model/store';
import { isBusy } from '../model/summary';
import { AlertList, Announcer, Notice } from './alerts';
import { runBands } from './chart-marks';
import { GpuList, MIN_GPUS_FOR_ROWS } from './gpu-list';
import type { HeadAction } from './menu';
import { countGpusByAlertLevel, Header } from './header';
import { HolderTable } from './holder-table';
import {
  mountView,
  StoreView,
  type MountHandle,
  type MountOptions,
  type ViewContext,
  type ViewOptions,
} from './store-view';
import { rowLayoutOf } from './gpu-card';
import { RunEntry, TourEntry, type Runner } from './dialog-entries';
import { EventList, HostStrip } from './sections';
import type { TourTargets } from './tour';

/** The minimum width at which the processes of one or two GPUs are next to the cards. */
const SIDE_BY_SIDE_PX = 1120;
/** The width of the margins and borders of a wide list. */
const LIST_FRAME_PX = 42;

interface OverviewOptions extends ViewOptions {
  /** Opens the charts of a GPU. If it is missing, cards have no button for charts. */
  onOpenGpu?: (index: number) => void;
  /** Opens the charts of all GPUs. */
  onOpenCharts?: () => void;
  onSettings?: () => void;
  /** The initial time range of the lines in minutes. */
  spanMinutes?: number;
  /** Whether the tour starts automatically for new users. */
  tour?: boolean;
}

interface OverviewState {
  /** The time range of the lines in minutes. */
  span: number;
  /** The ID of the holder under the pointer, which is highlighted. */
  highlighted: string | null;
  isRunOpen: boolean;
}

export class Overview extends StoreView {
  private readonly announcer = new Announcer();
  private readonly filter = new StoredValue('gpumon-filter');
  private readonly order = new StoredValue('gpumon-order');
  private readonly sorter = new GpuSorter();
  private readonly tour: TourEntry;
  private state: OverviewState;

  /** If `runner` is `null`, no benchmarks can be run. */
  constructor(
    store: Store,
    protected override readonly options: OverviewOptions & ViewContext,
    private readonly runner: Runner | null = null,
  ) {
    super(
      createElement('div', { class: 'gpumon', tabindex: '-1', 'data-testid': 'gpumon' }),
      store,
      options,
      '100px',
    );
    this.state = { span: options.spanMinutes ?? 2, highlighted: null, isRunOpen: false };
    this.tour = new TourEntry(this.element, () => this.tourTargets(), options.tour === true);
  }

  override render(): void {
    super.render();
    if (this.store.sample !== null) {
      this.tour.showIfRequested();
    }
  }

  showTour(): void {
    this.tour.requestTour();
    this.invalidate();
  }

  showBenchmarks(): void {
    this.setState({ isRunOpen: true });
  }

  protected renderContent(): ComponentChild {
    const { store, options, runner, order, state } = this;
    const { sample } = store;
    const now_ms = store.clock.now();
    const gpus = gpusOf(store.inventory, sample, store.details);
    const { status, notice, summary, at_ms } = this.makeHead(gpus);
    const freshness = { now_ms, stale: !isFresh(status) };
    const { rows, holders, alerts, levelOf } = this.listHoldersAndAlerts(gpus, now_ms);
    const ofMachine = firingAlerts(store.firing, null, now_ms);
    alerts.set(null, ofMachine);

    const typed = this.filter.get() ?? '';
    const isMany = gpus.length >= MIN_GPUS_FOR_ROWS;
    const filter = isMany ? typed : removeWordsExceptLevels(typed);
    const moment = { at_ms: now_ms, timeline: store.timeline };
    const shown = filterGpus(filter, gpus, rows, { isBusy: (gpu) => isBusy(gpu, moment), levelOf });
    const sortOrder = isMany ? parseOrder(order.get()) : null;
    const hasSameName = gpus.length > 1 && commonName(gpus) !== null;
    const { isWide, width_px } = this;
    const palette = this.currentPalette();
    const context = {
      store,
      now_ms,
      window: store.timeWindow(now_ms - state.span * 60_000, now_ms),
      palette,
      markers: this.markers(store.events, palette),
      bands: runBands(store.events, palette, now_ms),
      layout: isMany
        ? rowLayoutOf(gpus.length, {
            width_px: width_px - (isWide ? LIST_FRAME_PX : 0),
            isWide,
            hasNames: !hasSameName,
          })
        : null,
      highlighted: state.highlighted,
      onOpenGpu: options.onOpenGpu,
    };
    const isSideBySide = width_px >= SIDE_BY_SIDE_PX && gpus.length > 0 && gpus.length <= 2;
    return (
      <>
        <Header
          {...{ title: options.title, store, status, summary, at_ms, onRetry: options.onRetry }}
          alerts={countGpusByAlertLevel(
            gpus,
            levelOf,
            (level) => hasLevelWord(filter, level),
            (level) => this.storeChoice(this.filter, toggleLevelWord(filter, level) || null),
          )}
          span={{ minutes: state.span, onChange: (span) => this.setState({ span }) }}
          actions={this.headActions()}
          request={runner?.request}
        />
        <div class="gpumon-visually-hidden" role="status" aria-live="polite">
          {this.announcer.update(status, notice, gpus, alerts, now_ms)}
        </div>
        <Notice notice={notice} level={status.level} />
        {runner !== null && (
          <RunEntry
            {...{ store, runner, gpus, freshness }}
            isOpen={state.isRunOpen}
            onClose={() => this.setState({ isRunOpen: false })}
          />
        )}
        {ofMachine.length > 0 && <AlertList alerts={ofMachine} />}
        <div class="gpumon-main" data-side-by-side={isSideBySide ? '' : undefined}>
          <GpuList
            gpus={this.sorter.sort(shown.gpus, sortOrder, levelOf, now_ms)}
            count={gpus.length}
            openByDefault={isWide && !isMany}
            {...{ rows, holders, alerts, context, hasSameName, filter }}
            onFilter={(text) => this.storeChoice(this.filter, text || null)}
            order={sortOrder}
            onSort={(by) => this.storeChoice(order, formatOrder(orderAfterClick(sortOrder, by)))}
          />
          {sample !== null && (
            <HolderTable
              rows={shown.rows}
              all={rows}
              freshness={freshness}
              onHighlight={(row) => this.setState({ highlighted: row?.key ?? null })}
              host={options.notebooks}
            />
          )}
        </div>
        {(sample !== null || store.events.length > 0) && (
          <EventList {...{ events: store.events, sample, gpus, now_ms }} />
        )}
        {sample !== null && <HostStrip host={sample.host} freshness={freshness} />}
      </>
    );
  }

  private setState(changes: Partial<OverviewState>): void {
    this.state = { ...this.state, ...changes };
    this.invalidate();
  }

  /** Stores a choice of the user. */
  private storeChoice(choice: StoredValue, value: string | null): void {
    choice.set(value);
    this.invalidate();
  }

  private headActions(): HeadAction[] {
    const { actions, onOpenCharts, onSettings } = this.options;
    const all: (HeadAction | null | undefined)[] = [
      onOpenCharts && {
        id: 'gpumon-charts',
        label: trans.__('Charts'),
        title: trans.__('Open the charts of all GPUs'),
        onClick: onOpenCharts,
      },
      ...(actions?.() ?? []),
      this.runner && {
        id: 'gpumon-run',
        label: trans.__('Benchmarks…'),
        title: trans.__('Benchmarks, stress test and out-of-memory demos, with verified results'),
        opens: 'dialog',
        onClick: () => this.showBenchmarks(),
        inMenu: true,
      },
      onSettings && {
        id: 'gpumon-settings',
        label: trans.__('Settings…'),
        onClick: onSettings,
        inMenu: true,
      },
      {
        id: 'gpumon-show-tour',
        label: trans.__('Take the tour'),
        onClick: () => this.showTour(),
        inMenu: true,
      },
    ];
    return all.flatMap((action) => action ?? []);
  }

  private tourTargets(): TourTargets {
    const find = (selector: string): Element | null => this.element.querySelector(selector);
    return {
      gpus: find('[data-gpu-index]'),
      holders: find('.gpumon-holders'),
      charts: find('[data-testid="gpumon-charts"]') ?? find('.gpumon-open'),
      benchmarks: this.runner === null ? null : find('.gpumon-head-menu'),
    };
  }
}

type MonitorOptions = MountOptions & OverviewOptions;

export interface Monitor extends MountHandle {
  /** Opens the benchmark dialog if the server can run benchmarks. */
  showBenchmarks: () => void;
  /** Starts the tour of the view. */
  showTour: () => void;
}

export function mountMonitor(host: HTMLElement, options: MonitorOptions): Monitor {
  const {
    store,
    options: { request, readOnly = false },
  } = options.feed;
  const mounted = mountView(host, options, (context, subscription) => {
    const setRuns = (runs: boolean): void => subscription.update({ runs });
    return new Overview(
      store,
      { ...options, ...context },
      request === undefined || readOnly ? null : { request, setRuns },
    );
  });
  return {
    ...mounted,
    showBenchmarks: () => mounted.view.showBenchmarks(),
    showTour: () => mounted.view.showTour(),
  };
}
