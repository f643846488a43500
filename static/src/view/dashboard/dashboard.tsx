/** The charts of GPUs and of the machine, with a common time axis. */

import type { ComponentChild } from 'preact';
import { useRef } from 'preact/hooks';

import { createElement } from '../../lib/dom';
import { memoizeLast } from '../../lib/memoize';
import { trans } from '../../lib/translation';
import { createNotebookNamer, executionsFromHistory } from '../../model/cell-log';
import {
  displayedChartIds,
  hasSeparateGpuCharts,
  isPaused,
  moveByShare,
  displayedRange,
  resetZoom,
  resume,
  showOnlyOrAllGpus,
  togglePaused,
  zoomSince,
  zoomByStep,
  type DashboardState,
} from '../../model/dashboard/state';
import { conditionSpans } from '../../model/dashboard/condition-spans';
import { MAX_SINGLE_LINES } from '../../model/dashboard/crowd';
import { metricsOnRequest } from '../../model/dashboard/kinds';
import { formatSpan } from '../../model/dashboard/readout';
import { PastHolders } from '../../model/dashboard/past-holders';
import {
  DRAWN_METRICS,
  HOST,
  metricsOf,
  sectionsOf,
  keepStackedLinesWithValues,
  type Section,
} from '../../model/dashboard/plots';
import type { Subscription } from '../../model/feed';
import { gpusOf } from '../../model/gpu';
import type { AvailableHistory } from '../../model/history';
import type { Request } from '../../model/request';
import { isFresh } from '../../model/status';
import type { Store } from '../../model/store';
import { countGpusByAlertLevel, Header } from '../header';
import { Notice } from '../alerts';
import { useThrottledRender } from '../component-view';
import { runBands } from '../chart-marks';
import { StoreView, type ViewContext, type ViewOptions } from '../store-view';
import { annotationsOf, cellBands, type AnnotationSet } from './annotations';
import { CellTable } from './cells';
import { AnnotationLane } from './lane';
import { PastSource } from './past-source';
import { PlotView } from './plot';
import type { ChangeState, PlotContext } from './plot-content';
import { Legend } from './readout';
import { Toolbar, type MarkDraft, type ToolbarMenu } from './toolbar';

interface DashboardOptions extends ViewOptions {
  state: DashboardState;
  /** Called with a new state, which the application may store. */
  onState: (state: DashboardState) => void;
  /** Sends an HTTP request to the server. If it is missing, no marks can be set. */
  request?: Request | undefined;
  /** Whether the page only displays the server, so that no marks can be set. */
  readOnly?: boolean | undefined;
}

/**
 * The maximum number of GPUs for which the driver's traces, with 50 values per second, are drawn.
 */
const TRACED_GPUS = 2;
const MOVE_SHARE = 0.25;
/**
 * The default height of charts that show all GPUs. `APART_HEIGHT_PX` is the default height of
 * charts of single GPUs.
 */
const HEIGHT_PX = 112;
const APART_HEIGHT_PX = 150;
/**
 * The selectors of controls that use every key. `SPACE_CONTROLS` contains the selectors of controls
 * that the space key activates.
 */
const KEY_CONTROLS = ['input', 'select', 'textarea', '.gpumon-menu>div'];
const SPACE_CONTROLS = ['button', 'a', 'summary'];
const NO_TRACES: ReadonlyMap<string, never> = new Map<string, never>();

export class Dashboard extends StoreView {
  private readonly holders = new PastHolders();
  private readonly past: PastSource;
  private readonly recorded = memoizeLast(executionsFromHistory);
  private state: DashboardState;
  private traced = false;
  /** The charts whose metrics were requested in addition to the default ones. */
  private tracked = '';
  private opened: ToolbarMenu | null = null;
  private draft: MarkDraft | null = null;
  /** The ID of the line under the pointer. */
  private pointed: string | null = null;

  constructor(
    store: Store,
    private readonly subscription: Pick<Subscription, 'update'>,
    protected override readonly options: DashboardOptions & ViewContext,
  ) {
    const name = {
      role: 'region',
      'aria-label': options.title,
      'data-testid': 'gpumon-dashboard',
    };
    super(
      createElement('div', { class: 'gpumon gpumon-dashboard', tabindex: '0', ...name }),
      store,
      options,
    );
    this.state = options.state;
    this.past = new PastSource(store, options.request, options.invalidate, (oldest_ms) =>
      this.change((state, now_ms) => zoomSince(state, oldest_ms, now_ms)),
    );
    this.element.addEventListener('keydown', (event) => this.onKey(event));
    this.element.addEventListener('click', ({ detail, target }) => {
      // After a click with the pointer, the charts get the focus, so that keys control them again.
      // If a key has activated a button, the button keeps the focus.
      const isOnCharts =
        target instanceof Element &&
        target.closest('.gpumon-controls, .gpumon-plot-sections') !== null &&
        target.closest('details') === null;
      if (detail > 0 && isOnCharts) {
        this.focus();
      }
    });
    this.subscription.update({ metrics: DRAWN_METRICS });
  }

  show(state: DashboardState): void {
    this.state = state;
    this.options.onState(state);
    this.invalidate();
  }

  override render(): void {
    super.render();
    if (isPaused(this.state)) {
      this.cursor.updateTime();
    }
  }

  override dispose(): void {
    super.dispose();
    this.past.dispose();
  }

  protected renderContent(): ComponentChild {
    const { store, state, options } = this;
    const { request, notebooks } = options;
    const now_ms = store.clock.now();
    const gpus = gpusOf(store.inventory, store.sample, store.details);
    const chosen = gpus.filter(({ index }) => state.gpus?.includes(index) ?? true);
    const indices = chosen.map(({ index }) => index);
    const { rows, levelOf } = this.listHoldersAndAlerts(gpus, now_ms);
    this.updateTraces();
    const [from_ms, to_ms] = displayedRange(state, now_ms);
    this.holders.record(rows, now_ms);
    this.holders.addFormerHolders(store.formerHolders, gpus, store.slots);
    this.holders.prune(store.timeline.times_ms[0] ?? now_ms);
    const { executions: own } = store.cells;
    const paths = new Set(own.flatMap(({ path }) => path ?? []));
    const holders = this.holders.holdersSince(from_ms, now_ms, paths);
    const all =
      store.sample === null ? [] : sectionsOf({ state, gpus, sample: store.sample, holders });
    const metrics = metricsOf(all);
    const need = { state, now_ms, metrics, gpus: chosen, width: this.chartWidth() };
    const { known, compared, notes } = this.past.findOrRequestSpans(need);
    // The history does not contain the memory of every holder, so stacked lines without values are
    // omitted.
    const sections = known === null ? all : keepStackedLinesWithValues(all, known.knows);
    const timeline = known?.source ?? store.timeline;
    const gap_ms = known?.gap_ms ?? store.gap_ms;
    const { status, ...head } = this.makeHead(chosen, { timeline, gap_ms });
    const palette = this.currentPalette();
    const window = store.timeWindow(from_ms, to_ms);
    const charts = displayedChartIds(state, chosen.length);
    this.requestChartMetrics(charts);
    const usual_px = hasSeparateGpuCharts(state, chosen.length) ? APART_HEIGHT_PX : HEIGHT_PX;
    const context: PlotContext = {
      timeline,
      mean_ms:
        known === null || !isMeanAt(known, this.cursor.at_ms) ? 0 : known.answer.resolution_ms,
      // The driver's traces only cover the last minutes, so they are not combined with history.
      traces: known === null ? store.traces : NO_TRACES,
      window: {
        ...window,
        gap_ms,
        times_ms: timeline.times_ms,
        // The revision changes with the compared lines, so that the charts are redrawn.
        revision: `${timeline.revision} ${compared?.revision ?? ''}`,
      },
      compared,
      palette,
      freshness: { now_ms, stale: !isFresh(status) },
      at_ms: this.cursor.at_ms ?? (isPaused(state) ? to_ms : null),
      hidden: new Set(state.hidden),
      pointed: this.pointed,
      onPoint: this.onPoint,
      axes: state.axes,
      fitted: state.fitted,
      height_px: state.height_px ?? usual_px,
      change: this.change,
    };
    const events = known?.events ?? store.events;
    const executions = [...this.recorded(events, own), ...own];
    const pathOf = (kernelId: string): string | null =>
      notebooks?.pathOf(kernelId) ?? this.holders.pathOf(kernelId);
    const notebookOf = createNotebookNamer(executions, pathOf, [
      ...paths,
      ...this.holders.pathsSince(from_ms),
    ]);
    const bands = cellBands(executions, notebookOf, palette, holders, now_ms);
    for (const [gpu, runs] of runBands(events, palette, now_ms)) {
      bands.set(gpu, [...runs, ...(bands.get(gpu) ?? [])]);
    }
    const { draft } = this;
    const markers = this.markers(events, palette);
    const about = draft && { at_ms: draft.at_ms, color: palette.text, label: draft.text || '…' };
    const annotations = annotationsOf(
      indices,
      bands,
      conditionSpans(events, store.sample, now_ms, known?.answer.conditions),
      about === null ? markers : { ...markers, ofAll: [...markers.ofAll, about] },
      palette,
      { from_ms, to_ms },
    );
    const first = sections.find(({ plots }) => plots.length > 0);
    return (
      <>
        <Header
          {...head}
          status={status}
          title={options.title}
          store={store}
          alerts={countGpusByAlertLevel(
            gpus,
            levelOf,
            (_, indices) => indices.length > 0 && indices.join() === state.gpus?.join(),
            (_, indices) => this.change((before) => showOnlyOrAllGpus(before, indices)),
          )}
          paused={isPaused(state) ? formatSpan(from_ms, to_ms, now_ms) : null}
          actions={options.actions?.() ?? []}
          onRetry={options.onRetry}
          onResume={this.onResume}
          request={request}
        />
        <Toolbar
          state={state}
          change={this.change}
          gpus={gpus}
          charts={charts}
          now_ms={now_ms}
          oldest_ms={this.past.oldest_ms}
          opened={this.opened}
          onOpen={this.onOpen}
          onDone={this.onDone}
          draft={draft}
          onDraft={this.onDraft}
          request={request}
          readOnly={options.readOnly}
        />
        <Notice notice={head.notice} level={status.level} />
        {notes}
        {sections.length > 0 && (
          <AnnotationLane
            content={annotations.lane}
            from_ms={from_ms}
            to_ms={to_ms}
            isOneGpu={chosen.length === 1}
          />
        )}
        <CellTable
          executions={executions}
          gpus={new Set(indices)}
          notebookOf={notebookOf}
          notebooks={notebooks}
        />
        <div
          class="gpumon-plot-sections"
          aria-busy={this.past.isLoading ? 'true' : undefined}
          style={{ '--_plot-height': `${context.height_px}px` }}
        >
          {sections.map((section) => (
            <PlotSection
              key={section.key}
              section={section}
              context={context}
              annotations={annotations}
              charts={charts}
              isFirst={section === first}
            />
          ))}
        </div>
      </>
    );
  }

  private readonly change: ChangeState = (edit) => {
    const next = edit(this.state, this.store.clock.now());
    if (next !== this.state) {
      this.show(next);
    }
  };

  private readonly onPoint = (id: string | null): void => {
    this.pointed = id;
    this.invalidate();
  };

  private readonly onOpen = (menu: ToolbarMenu, open: boolean): void => {
    if (open === (this.opened === menu)) {
      return;
    }
    this.opened = open ? menu : null;
    this.draft =
      this.opened === 'marks'
        ? { at_ms: this.cursor.at_ms ?? this.store.clock.now(), text: '' }
        : null;
    this.invalidate();
  };

  private readonly onDraft = (draft: MarkDraft): void => {
    this.draft = draft;
    this.invalidate();
  };

  private readonly onDone = (): void => {
    if (this.opened !== null) {
      this.onOpen(this.opened, false);
    }
    this.focus();
  };

  private readonly onResume = (): void => {
    this.change(resume);
    this.focus();
  };

  private focus(): void {
    this.element.focus({ preventScroll: true });
  }

  private get canAddMarks(): boolean {
    return this.options.request !== undefined && this.options.readOnly !== true;
  }

  /** Returns the width of a chart in device pixels, or 0 if none has been drawn. */
  private chartWidth(): number {
    return this.element.querySelector('canvas')?.width ?? 0;
  }

  /** Requests the driver's traces if there are at most `TRACED_GPUS` GPUs. */
  private updateTraces(): void {
    const count = this.state.gpus?.length ?? this.store.inventory?.gpus.length ?? 0;
    const traced = count > 0 && count <= TRACED_GPUS && hasSeparateGpuCharts(this.state, count);
    if (traced !== this.traced) {
      this.traced = traced;
      this.subscription.update({ traces: traced });
    }
  }

  /** Requests the metrics of the displayed charts, once the number of GPUs is known. */
  private requestChartMetrics(charts: readonly string[]): void {
    if (this.store.inventory !== null && charts.join() !== this.tracked) {
      this.tracked = charts.join();
      this.subscription.update({ metrics: [...DRAWN_METRICS, ...metricsOnRequest(charts)] });
    }
  }

  /** Handles the keyboard shortcuts, which the help menu lists. */
  private onKey(event: KeyboardEvent): void {
    const { key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || isKeyUsedByControl(event.target, key)) {
      return;
    }
    if (key === 'ArrowLeft' || key === 'ArrowRight') {
      const share = key === 'ArrowLeft' ? -MOVE_SHARE : MOVE_SHARE;
      this.change((state, now_ms) => moveByShare(state, share, now_ms));
    } else if (key === ' ') {
      this.change(togglePaused);
    } else if (key === '+' || key === '=' || key === '-') {
      this.change((state, now_ms) => zoomByStep(state, key === '-' ? 2 : 0.5, now_ms));
    } else if (key === 'y') {
      this.change((state) => ({ ...state, fitted: !state.fitted }));
    } else if (key === 'Escape' && this.opened !== null) {
      this.onDone();
    } else if (key === '0' || key === 'Escape') {
      this.change(resetZoom);
    } else if (key === '?' || (key === 'm' && this.canAddMarks)) {
      this.onOpen(key === 'm' ? 'marks' : 'help', true);
      // The view is rendered immediately, because the next key is meant for the opened menu and may
      // arrive before the next frame.
      this.render();
    } else {
      return;
    }
    event.preventDefault();
  }
}

/** Shows a group of charts with its heading. */
function PlotSection({
  section: { key, gpu, title, plots, missing },
  context: given,
  annotations,
  charts,
  isFirst,
}: {
  section: Section;
  context: PlotContext;
  annotations: AnnotationSet;
  charts: readonly string[];
  isFirst: boolean;
}) {
  const element = useRef<HTMLElement>(null);
  const { freshness } = given;
  const renderPlots = () => {
    const isHealthy = gpu === null || gpu.now?.health.state === 'ok';
    const context = isHealthy ? given : { ...given, freshness: { ...freshness, stale: true } };
    const lines = new Map(plots.flatMap((plot) => plot.lines.map((line) => [line.id, line])));
    const isCrowd = plots.some((plot) => plot.lines.length > MAX_SINGLE_LINES);
    return (
      <>
        <h2>{title}</h2>
        {isCrowd && (
          <>
            <p class="gpumon-missing">
              {trans.__(
                'Line: median. Band: 10th to 90th percentile of GPUs. Other lines: outliers and selected GPUs.',
              )}
            </p>
            <Legend lines={[...lines.values()]} ids={[...lines.keys()]} context={context} />
          </>
        )}
        <div class="gpumon-plots">
          {plots.map((plot, place) => (
            <PlotView
              key={plot.key}
              plot={plot}
              context={context}
              annotations={key === HOST ? annotations.machine : annotations.of(plot.gpu)}
              charts={charts}
              isFirst={isFirst && place === 0}
            />
          ))}
        </div>
        {missing.length > 0 && (
          <p class="gpumon-missing">
            {trans.__('Not available with this board or driver: %1.', missing.join(', '))}
          </p>
        )}
      </>
    );
  };
  const content = useThrottledRender(element, freshness.now_ms, renderPlots, gpu?.index);
  return (
    <section data-section={key} ref={element}>
      {content}
    </section>
  );
}

/**
 * Returns whether the focused control uses the key to type text, to be activated, or to move within
 * a menu.
 */
function isKeyUsedByControl(target: EventTarget | null, key: string): boolean {
  const controls = key === ' ' ? [...KEY_CONTROLS, ...SPACE_CONTROLS] : KEY_CONTROLS;
  return target instanceof Element && target.closest(controls.join()) !== null;
}

/**
 * Returns whether the value at a time is a mean. Live samples after the end of the server's
 * response are not means.
 */
function isMeanAt({ areMeans, answer }: AvailableHistory, at_ms: number | null): boolean {
  return areMeans && at_ms !== null && at_ms <= answer.to_ms;
}
