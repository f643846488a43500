/** One GPU: the answer first, its lines and details on demand. */

import type { Band, EventMarker, TimeWindow } from '../chart/content';
import { button, h, setAttribute, setShown, setText } from '../lib/dom';
import { joined, plainText } from '../lib/text';
import { trans } from '../lib/translation';
import { alertsOf, describeThrottling, worstLevel, worstFirst, type Alert } from '../model/condition';
import { seriesKey, type GpuState } from '../model/gpu';
import type { HolderRow } from '../model/holders';
import { forecastOf, describeForecast } from '../model/memory-forecast';
import { memorySegments } from '../model/memory';
import { METRICS } from '../model/metric';
import { valueOf } from '../model/reading';
import type { Store } from '../model/store';
import { describeClock, describeHealth } from '../model/describe';
import { AlertList } from './alert-list';
import { Details } from './details';
import { MemoryBar } from './memory-bar';
import { MetricCell } from './metric-cell';
import type { Cursor } from './cursor';
import type { Palette } from './palette';
import { Visibility } from './visibility';
import type { Freshness } from './value';

/** What all cards of one drawing share. */
export interface CardContext {
  store: Store;
  window: TimeWindow;
  palette: Palette;
  /** Event markers on the time axis of each GPU's charts. */
  markers: ReadonlyMap<number, readonly EventMarker[]>;
  /** Spans of time that are shaded there. */
  bands: ReadonlyMap<number, readonly Band[]>;
  /** Whether cards are open where nobody has said otherwise. */
  openByDefault: boolean;
}

/** Between the turns of two cards that nobody sees. */
const TURN_MS = 617;

export interface CardOptions {
  invalidate: () => void;
  /** Opens the charts of a GPU; without it, that is not possible. */
  onOpenGpu?: (index: number) => void;
}

export class GpuCard {
  readonly element: HTMLElement;
  private readonly visibility: Visibility;
  /** The arguments of the last update, which may have been skipped. */
  private latest: [gpu: GpuState, rows: readonly HolderRow[], context: CardContext] | null = null;
  private chosenOpen: boolean | null = null;
  /** The server's time at the last drawing. */
  private now_ms = 0;
  private readonly index = h('span', { class: 'gpumon-gpu-index' });
  private readonly name = h('span', { class: 'gpumon-gpu-name' });
  private readonly clocks = h('span', { class: 'gpumon-clocks', 'data-testid': 'gpumon-clocks' });
  private readonly toggle: HTMLButtonElement;
  private readonly alerts = new AlertList();
  private readonly bar = new MemoryBar();
  private readonly details: Details;
  private readonly cells: { id: string; cell: MetricCell }[];

  constructor(
    readonly gpuIndex: number,
    private readonly cursor: Cursor,
    id: string,
    options: CardOptions,
  ) {
    this.visibility = new Visibility(gpuIndex * TURN_MS);
    this.details = new Details(options.invalidate);
    this.cells = METRICS.map((metric) => ({ id: metric.id, cell: new MetricCell(metric, cursor) }));
    this.cells.find(({ id }) => id === 'memory.used_bytes')?.cell.insertBeforeChart(this.bar.element);
    const body = h('div', { class: 'gpumon-metrics', id }, ...this.cells.map(({ cell }) => cell.element));
    this.toggle = button({ class: 'gpumon-toggle', 'aria-controls': id }, () => {
      this.chosenOpen = !this.isOpen();
      options.invalidate();
    });
    const head = h('header', { class: 'gpumon-gpu-head' }, this.index, this.name, this.clocks, this.toggle);
    const { onOpenGpu } = options;
    if (onOpenGpu !== undefined) {
      const title = trans.__('Open charts');
      this.toggle.before(button({ class: 'gpumon-open', 'aria-label': title, title }, () => onOpenGpu(gpuIndex)));
    }
    this.element = h(
      'article',
      { class: 'gpumon-gpu', tabindex: '0' },
      head,
      this.alerts.element,
      body,
      this.details.element,
    );
    this.element.addEventListener('keydown', (event) => this.onKey(event));
    this.element.addEventListener('blur', () => this.cursor.set(null));
  }

  update(gpu: GpuState, rows: readonly HolderRow[], context: CardContext): void {
    this.latest = [gpu, rows, context];
    this.now_ms = context.store.clock.now();
    this.updateOpen(context.openByDefault);
    if (!this.visibility.skips(this.now_ms)) {
      this.write(gpu, rows, context);
    }
  }

  /** It was scrolled into view, or out of it. */
  setOnScreen(onScreen: boolean): void {
    this.visibility.onScreen = onScreen;
    if (onScreen && this.latest !== null) {
      const [gpu, rows, context] = this.latest;
      const window = { ...context.window, times_ms: context.store.timeline.times_ms };
      this.write(gpu, rows, { ...context, window });
      this.draw(gpu, { ...context, window });
    }
  }

  /** It is about to be seen without another frame. */
  reveal(): void {
    this.visibility.onScreen = true;
    for (const { cell } of this.cells) {
      cell.reveal();
    }
  }

  highlight(holderKey: string | null): void {
    this.bar.highlight(holderKey);
  }

  dispose(): void {
    for (const { cell } of this.cells) {
      cell.dispose();
    }
  }

  /** Draws the lines of a card that is seen. It is done when all cards are written, since letters ask for their styles. */
  draw(gpu: GpuState, { store, window, markers, bands, palette }: CardContext): void {
    if (this.visibility.onScreen) {
      const annotations = { markers: markers.get(gpu.index) ?? [], bands: bands.get(gpu.index) ?? [] };
      for (const { id, cell } of this.cells) {
        cell.draw(store.timeline.values(seriesKey(gpu, id)), window, annotations, palette);
      }
    }
  }

  private write(gpu: GpuState, rows: readonly HolderRow[], { store, window }: CardContext): void {
    const { now_ms } = this;
    const { now } = gpu;
    const healthy = now?.health.state === 'ok';
    const late = now !== null && now_ms - now.at_ms > store.gap_ms + 2000;
    const freshness: Freshness = { now_ms, stale: !healthy || late };
    setAttribute(this.element, 'data-gpu-index', String(gpu.index));
    setAttribute(this.element, 'data-gpu-health', now?.health.state ?? 'unread');
    setAttribute(this.element, 'aria-label', trans.__('GPU %1, %2', gpu.index, plainText(gpu.name)));
    setText(this.index, String(gpu.index));
    setText(this.name, plainText(gpu.name));
    setAttribute(this.name, 'title', joined([gpu.fullName, gpu.uuid, gpu.busId], '\n'));
    this.describeUpdate(gpu, rows, now_ms, store);
    for (const { id, cell } of this.cells) {
      cell.update(gpu, store.timeline.values(seriesKey(gpu, id)), window, freshness);
    }
    this.bar.update(now === null ? [] : memorySegments(now.memory, rows));
    if (this.isOpen()) {
      this.details.update(gpu, freshness);
    }
  }

  private describeUpdate(gpu: GpuState, rows: readonly HolderRow[], now_ms: number, store: Store): void {
    const now = gpu.now;
    const reasons = now?.health.state === 'ok' ? valueOf(now.throttle_reasons) : null;
    const clocks = describeThrottling(now, now_ms) ?? describeClock(reasons ?? []);
    setText(this.clocks, clocks?.text ?? '');
    setAttribute(this.clocks, 'title', clocks?.title ?? null);
    const health = now === null ? null : describeHealth(now.health, now_ms);
    const forecast = forecastOf(gpu, rows, store.memoryHorizon_ms);
    const alerts: Alert[] = [
      ...(health === null ? [] : [{ ...health, key: 'health' }]),
      ...(forecast === null ? [] : [{ ...describeForecast(forecast), key: 'forecast' }]),
      ...alertsOf(now, now_ms),
    ];
    this.alerts.update(worstFirst(alerts));
    setAttribute(this.element, 'data-worst-level', worstLevel(alerts.map(({ level }) => level)));
  }

  private isOpen(): boolean {
    return this.toggle.getAttribute('aria-expanded') === 'true';
  }

  private updateOpen(openByDefault: boolean): void {
    const open = this.chosenOpen ?? openByDefault;
    setAttribute(this.toggle, 'aria-expanded', String(open));
    const title = open ? trans.__('Hide charts and details') : trans.__('Show charts and details');
    setAttribute(this.toggle, 'aria-label', title);
    setAttribute(this.toggle, 'title', title);
    setAttribute(this.element, 'data-open', String(open));
    setShown(this.details.element, open);
  }

  /** The arrow keys move the cursor as a pointer does; Escape returns to live. */
  private onKey(event: KeyboardEvent): void {
    if (event.target !== this.element) {
      return;
    }
    const step_ms = event.shiftKey ? 10_000 : 1000;
    const at_ms = this.cursor.at_ms ?? this.now_ms;
    if (event.key === 'ArrowLeft') {
      this.cursor.set(at_ms - step_ms);
    } else if (event.key === 'ArrowRight') {
      this.cursor.set(at_ms + step_ms > this.now_ms ? null : at_ms + step_ms);
    } else if (event.key === 'Escape') {
      this.cursor.set(null);
    } else if (event.key === 'Enter') {
      this.toggle.click();
    } else {
      return;
    }
    event.preventDefault();
  }
}
