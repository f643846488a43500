/** The charts of GPUs and of the machine, on one axis of time. */

import type { TimeWindow } from '../../chart/content';
import { h, KeyedRows, setAttribute } from '../../lib/dom';
import { remembered } from '../../lib/remembered';
import type { SeriesSource } from '../../lib/timeline';
import { notebookNamer, recorded } from '../../model/cell-log';
import { chartsOf, isApart, placed, stepped } from '../../model/dashboard/arrange';
import { conditionSpans } from '../../model/dashboard/condition-spans';
import { uncharted } from '../../model/dashboard/kinds';
import { isolated, toggledLine } from '../../model/dashboard/legend';
import { spanText } from '../../model/dashboard/moment';
import { PastHolders } from '../../model/dashboard/past-holders';
import {
  DRAWN,
  HOST,
  metricsOf,
  sectionsOf,
  withStacks,
  type Section,
} from '../../model/dashboard/plots';
import {
  asChosen,
  isPaused,
  moved,
  movedBy,
  rangeOf,
  reset,
  resumed,
  togglePaused,
  withAxis,
  zoomed,
  zoomedBy,
  zoomedSince,
  zoomedStep,
  type DashboardState,
} from '../../model/dashboard/state';
import type { Subscription } from '../../model/feed';
import { gpusOf } from '../../model/gpu';
import { holderRows } from '../../model/holders';
import type { Known } from '../../model/history/past';
import type { Request } from '../../model/request';
import { isFresh } from '../../model/status';
import type { Store } from '../../model/store';
import type { Moment } from '../../model/summary';
import { Header } from '../header';
import { runBands } from '../run-bands';
import { StoreView, type ViewContext, type ViewOptions } from '../store-view';
import { AnnotationSet } from './annotations';
import { bandsOf } from './bands';
import { DashboardBar } from './bar';
import { CellTable } from './cell-table';
import type { PlotContext } from './context';
import { MarkForm } from './mark-form';
import { PastSource } from './past-source';
import { PlotView, type PlotListener } from './plot';
import { SectionView } from './section';
import { Tooltip } from './tooltip';

export interface DashboardOptions extends ViewOptions {
  state: DashboardState;
  /** Something else is shown, and may be remembered. */
  onState: (state: DashboardState) => void;
  /** Asks the server something over HTTP; without it, nothing can be marked. */
  request?: Request | undefined;
  /** Whether nothing can be marked there. */
  readOnly?: boolean | undefined;
}

/** The most GPUs for which 50 samples a second are drawn. */
const TRACED_GPUS = 2;
const STEP = 0.25;
/** Selectors of controls that use every key, and of controls that a space presses. */
const TYPED_INTO = ['input', 'select', 'textarea', '.gpumon-menu>div'];
const PRESSED = ['button', 'a', 'summary'];
const NO_TRACES: ReadonlyMap<string, never> = new Map<string, never>();

export class Dashboard extends StoreView {
  protected readonly header: Header;
  private readonly bar: DashboardBar;
  private readonly marks: MarkForm | null;
  private readonly list = h('div', { class: 'gpumon-plot-sections' });
  private readonly sections = this.sectionsIn(this.list);
  /** Below the cells, since these are of the GPUs. */
  private readonly machineList = h('div', { class: 'gpumon-plot-sections' });
  private readonly machine = this.sectionsIn(this.machineList);
  private readonly tooltip = new Tooltip();
  private readonly holders = new PastHolders();
  private readonly past: PastSource;
  private readonly cells: CellTable;
  private readonly recorded = remembered(recorded);
  private state: DashboardState;
  private traced = false;
  /** The readings that were asked for besides the usual; `null` before the first time. */
  private tracked: string | null = null;
  private shownGpus = 0;
  /** What the server remembers of what is shown, where that is needed. */
  private shown: Known | null = null;

  constructor(
    store: Store,
    private readonly subscription: Pick<Subscription, 'update'>,
    protected override readonly options: DashboardOptions & ViewContext,
  ) {
    const { title } = options;
    const name = { role: 'region', 'aria-label': title, 'data-testid': 'gpumon-dashboard' };
    super(h('div', { class: 'gpumon gpumon-dashboard', tabindex: '0', ...name }), store, options);
    this.state = options.state;
    this.header = new Header({
      ...options,
      onResume: () => {
        this.show(resumed(this.state));
        this.element.focus({ preventScroll: true });
      },
    });
    const { request, readOnly = false } = options;
    this.marks =
      request === undefined || readOnly
        ? null
        : new MarkForm({
            request,
            momentPointedAt: () => this.cursor.at_ms ?? store.clock.now(),
            onChange: options.invalidate,
            onDone: () => this.element.focus({ preventScroll: true }),
          });
    const listener = {
      onAdd: (chart: string) => this.arrange((charts) => [...charts, chart]),
      onRemove: (chart: string) => this.removeChart(chart),
      onReset: () => this.show({ ...this.state, charts: null }),
      invalidate: options.invalidate,
    };
    this.bar = new DashboardBar(
      this.state,
      (state) => this.show(state),
      listener,
      this.marks?.element,
    );
    this.past = new PastSource(store, request, {
      invalidate: options.invalidate,
      onAll: (oldest_ms) => this.show(zoomedSince(this.state, oldest_ms, store.clock.now())),
    });
    this.cells = new CellTable(options.invalidate, options.notebooks);
    this.element.append(this.header.element, this.bar.element, this.notice.element, this.past.note);
    this.element.append(this.past.figures);
    this.element.append(this.list, this.cells.element, this.machineList);
    this.element.addEventListener('keydown', (event) => this.onKey(event));
    for (const part of [this.bar.element, this.list, this.machineList]) {
      part.addEventListener('click', ({ detail, target }) => {
        // After a click, keys act on the charts again. A button pressed by a key keeps the focus.
        if (detail > 0 && target instanceof Element && target.closest('details') === null) {
          this.element.focus({ preventScroll: true });
        }
      });
    }
    this.trackCharts();
  }

  show(state: DashboardState): void {
    this.state = state;
    this.trackCharts();
    this.options.onState(state);
    this.options.invalidate();
  }

  render(): void {
    const { store, state } = this;
    const now_ms = store.clock.now();
    const gpus = gpusOf(store.inventory, store.sample, store.details);
    const chosen = gpus.filter(({ index }) => state.gpus?.includes(index) ?? true);
    this.shownGpus = chosen.length;
    this.updateTraces();
    const [from_ms, to_ms] = rangeOf(state, now_ms);
    this.holders.record(holderRows(gpus, store.slots, this.options.notebooks?.pathOf), now_ms);
    this.holders.recall(store.formerHolders, gpus, store.slots);
    this.holders.prune(store.timeline.times_ms[0] ?? now_ms);
    const { executions: own } = store.cells;
    const paths = new Set(own.flatMap(({ path }) => path ?? []));
    const holders = this.holders.since(from_ms, now_ms, paths);
    const all =
      store.sample === null ? [] : sectionsOf({ state, gpus, sample: store.sample, holders });
    const metrics = metricsOf(all);
    const known = this.past.known(state, now_ms, metrics, this.chartWidth());
    const compared = this.past.compared(state, now_ms, metrics, chosen, this.chartWidth());
    // Who held the memory is known of the last minutes alone.
    const sections = known === null ? all : withStacks(all, known.knows);
    this.shown = known;
    const { status } = this.renderHead(
      chosen,
      0,
      isPaused(state) ? spanText(from_ms, to_ms, now_ms) : null,
    );
    this.bar.update(state, gpus, now_ms, chartsOf(state, chosen.length));
    for (const list of [this.list, this.machineList]) {
      setAttribute(list, 'aria-busy', this.past.isLoading ? 'true' : null);
    }
    const palette = this.currentPalette();
    const context: PlotContext = {
      timeline: known?.source ?? store.timeline,
      mean_ms: known === null ? 0 : meanTime(known, this.cursor.at_ms),
      // The driver's own records are of the last minutes.
      traces: known === null ? store.traces : NO_TRACES,
      window: withRevisionOf(compared, {
        ...store.window(from_ms, to_ms),
        ...(known !== null && windowOf(known)),
      }),
      compared,
      palette,
      freshness: { now_ms, stale: !isFresh(status) },
      at_ms: this.cursor.at_ms ?? (isPaused(state) ? to_ms : null),
      hidden: new Set(state.hidden),
      axes: state.axes,
      fitted: state.fitted,
    };
    const [ofGpus, ofMachine] = [
      sections.filter(({ key }) => key !== HOST),
      sections.filter(({ key }) => key === HOST),
    ];
    this.sections.update(ofGpus, (view, section) => view.update(section, context));
    this.machine.update(ofMachine, (view, section) => view.update(section, context));
    const events = known?.events ?? store.events;
    const executions = [...this.recorded(events, own), ...own];
    const pathOf = (kernelId: string): string | null =>
      this.options.notebooks?.pathOf(kernelId) ?? this.holders.pathOf(kernelId);
    const notebookOf = notebookNamer(executions, pathOf, [
      ...paths,
      ...this.holders.pathsSince(from_ms),
    ]);
    this.cells.update(executions, new Set(chosen.map(({ index }) => index)), notebookOf);
    const markers = this.markers(events, palette);
    const annotations = new AnnotationSet(
      bandsOf(executions, notebookOf, palette, holders, now_ms, runBands(events, palette, now_ms)),
      conditionSpans(events, store.sample, now_ms, known?.answer.conditions),
      this.marks?.withDraft(markers, palette) ?? markers,
      chosen.map(({ index }) => index),
      palette,
      context.window,
    );
    for (const section of sections) {
      (section.key === HOST ? this.machine : this.sections)
        .get(section.key)
        ?.draw(section, context, annotations);
    }
    if (isPaused(state)) {
      this.cursor.follow();
    }
  }

  revealAll(): void {
    [...this.sections.all, ...this.machine.all].forEach((section) => section.revealAll());
  }

  override dispose(): void {
    super.dispose();
    this.past.dispose();
    this.sections.update([], () => undefined);
    this.machine.update([], () => undefined);
  }

  protected override get seen(): Pick<Moment, 'timeline' | 'gap_ms'> {
    return this.shown === null
      ? super.seen
      : { timeline: this.shown.source, gap_ms: this.shown.gap_ms };
  }

  /** The pixels of the device that the widest chart has; 0 until one is seen. */
  private chartWidth(): number {
    return Math.max(
      0,
      ...[...this.sections.all, ...this.machine.all].map((section) => section.width),
    );
  }

  /** Requests the driver's own records, where there are few enough GPUs. */
  private updateTraces(): void {
    const count = this.state.gpus?.length ?? this.store.inventory?.gpus.length ?? 0;
    const traced = count > 0 && count <= TRACED_GPUS && isApart(this.state, count);
    if (traced !== this.traced) {
      this.traced = traced;
      this.subscription.update({ traces: traced });
    }
  }

  private sectionsIn(list: HTMLElement): KeyedRows<Section, SectionView> {
    return new KeyedRows(
      list,
      ({ key }) => key,
      () => this.newSection(),
      (view) => view.dispose(),
    );
  }

  /** Requests what is drawn, by itself or because somebody chose it. */
  private trackCharts(): void {
    const chosen = uncharted(this.state.charts ?? []);
    if (chosen.join() !== this.tracked) {
      this.tracked = chosen.join();
      this.subscription.update({ metrics: [...DRAWN, ...chosen] });
    }
  }

  private removeChart(chart: string): void {
    this.arrange((charts) => charts.filter((id) => id !== chart));
  }

  /** Changes which charts there are, or their order. */
  private arrange(edit: (charts: readonly string[]) => readonly string[]): void {
    this.show({ ...this.state, charts: asChosen(edit(chartsOf(this.state, this.shownGpus))) });
  }

  private newSection(): SectionView {
    const hide = (hidden: readonly string[]): void => this.show({ ...this.state, hidden });
    const listener: PlotListener = {
      onZoom: (a_ms, b_ms) => this.show(zoomed(this.state, a_ms, b_ms)),
      onZoomBy: (factor, at_ms) =>
        this.show(zoomedBy(this.state, factor, at_ms, this.store.clock.now())),
      onGrab: () => {
        const grabbed = this.state;
        const now_ms = this.store.clock.now();
        return (by_ms) => this.show(movedBy(grabbed, by_ms, now_ms));
      },
      onAxis: (chart, range) => this.show(withAxis(this.state, chart, range)),
      onReset: (chart) => this.show(withAxis(resumed(this.state), chart, null)),
      onIsolate: (id, legend) => hide(isolated(this.state.hidden, id, legend)),
      onToggle: (id, legend) => hide(toggledLine(this.state.hidden, id, legend)),
      onPlace: (chart, target, after) =>
        this.arrange((charts) => placed(charts, chart, target, after)),
      onStep: (chart, step) => this.arrange((charts) => stepped(charts, chart, step)),
      onRemove: (chart) => this.removeChart(chart),
    };
    return new SectionView(
      () => new PlotView(this.cursor, this.tooltip, this.options.invalidate, listener),
      this.screen,
    );
  }

  /** As `keys.ts` tells. */
  private onKey(event: KeyboardEvent): void {
    const now_ms = this.store.clock.now();
    const { key } = event;
    if (event.ctrlKey || event.metaKey || event.altKey || isForControl(event.target, key)) {
      return;
    }
    if (key === 'ArrowLeft' || key === 'ArrowRight') {
      this.show(moved(this.state, key === 'ArrowLeft' ? -STEP : STEP, now_ms));
    } else if (key === ' ') {
      this.show(togglePaused(this.state, now_ms));
    } else if (key === '+' || key === '=' || key === '-') {
      this.show(zoomedStep(this.state, key === '-' ? 2 : 0.5, now_ms));
    } else if (key === 'y') {
      this.show({ ...this.state, fitted: !this.state.fitted });
    } else if (key === '0' || key === 'Escape') {
      this.show(reset(this.state));
    } else if (key === 'm' && this.marks !== null) {
      this.marks.open();
    } else if (key === '?') {
      this.bar.openHelp();
    } else {
      return;
    }
    event.preventDefault();
  }
}

/**
 * Returns `true` if the focused control uses the key: to type, to press, or to move within a menu.
 */
function isForControl(target: EventTarget | null, key: string): boolean {
  const controls = key === ' ' ? [...TYPED_INTO, ...PRESSED] : TYPED_INTO;
  return target instanceof Element && target.closest(controls.join()) !== null;
}

/** The time that a value there is the mean of; what was received since is read as it came. */
function meanTime({ areMeans, answer }: Known, at_ms: number | null): number {
  return areMeans && at_ms !== null && at_ms <= answer.to_ms ? answer.resolution_ms : 0;
}

/** Charts are drawn anew where more became known of what they are compared with. */
function withRevisionOf(compared: SeriesSource | null, window: TimeWindow): TimeWindow {
  return compared === null
    ? window
    : { ...window, revision: `${window.revision} ${compared.revision}` };
}

function windowOf({ source, gap_ms }: Known): Pick<TimeWindow, 'times_ms' | 'revision' | 'gap_ms'> {
  return { times_ms: source.times_ms, revision: source.revision, gap_ms };
}
