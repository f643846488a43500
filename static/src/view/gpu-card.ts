/** One GPU: the answer first, its lines and details on demand. */

import type { Band, TimeWindow } from '../chart/content';
import { button, h, setAttribute, setShown, setText } from '../lib/dom';
import { joined, plainText } from '../lib/text';
import { trans } from '../lib/translation';
import { worstLevel } from '../model/condition';
import { seriesKey, type GpuState } from '../model/gpu';
import { gpuAlerts, shortState } from '../model/gpu-alerts';
import type { HolderRow } from '../model/holders';
import { describeAvailable, isUnified } from '../model/memory';
import { METRICS } from '../model/metric';
import type { Store } from '../model/store';
import { AlertList } from './alert-list';
import type { Details } from './details';
import { MemoryBar } from './memory-bar';
import { MetricCell } from './metric-cell';
import { failedPart, part } from './part';
import { severityIcon } from './severity-icon';
import type { Cursor } from './cursor';
import type { Markers } from './event-markers';
import type { Palette } from './palette';
import { Visibility } from './visibility';
import type { Freshness } from './value';

/** What all cards of one drawing share. */
export interface CardContext {
  store: Store;
  window: TimeWindow;
  palette: Palette;
  /** On the time axis of charts. */
  markers: Markers;
  /** Spans of time that are shaded there. */
  bands: ReadonlyMap<number, readonly Band[]>;
  /** Whether cards are open where nobody has said otherwise. */
  openByDefault: boolean;
  /** How a closed card stands as a row among many; `null` where they are few. */
  rowLayout: 'one' | 'columns' | null;
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
  private readonly stateText = h('span', {});
  private readonly state = h(
    'span',
    { class: 'gpumon-gpu-state', 'data-testid': 'gpumon-gpu-state' },
    severityIcon(),
    this.stateText,
  );
  private readonly toggle: HTMLButtonElement;
  private readonly alerts = new AlertList();
  /** The available amount of unified memory. */
  private readonly available = h('span', { class: 'gpumon-available' });
  private readonly bar = new MemoryBar();
  /** Loaded when a card is first opened. */
  private details: Pick<Details, 'element' | 'update'> | null = null;
  private loading = false;
  private readonly cells: { id: string; cell: MetricCell }[];

  constructor(
    readonly gpuIndex: number,
    private readonly cursor: Cursor,
    id: string,
    private readonly options: CardOptions,
  ) {
    this.visibility = new Visibility(gpuIndex * TURN_MS);
    this.cells = METRICS.map((metric) => ({ id: metric.id, cell: new MetricCell(metric, cursor) }));
    this.cells
      .find(({ id }) => id === 'memory.used_bytes')
      ?.cell.insertBeforeChart(this.available, this.bar.element);
    const body = h(
      'div',
      { class: 'gpumon-metrics', id },
      ...this.cells.map(({ cell }) => cell.element),
    );
    this.toggle = button({ class: 'gpumon-toggle', 'aria-controls': id }, () => {
      this.chosenOpen = !this.isOpen();
      options.invalidate();
    });
    const head = h(
      'div',
      { class: 'gpumon-gpu-head' },
      this.index,
      this.name,
      this.state,
      this.toggle,
    );
    const { onOpenGpu } = options;
    if (onOpenGpu !== undefined) {
      const title = trans.__('Open charts');
      this.toggle.before(
        button({ class: 'gpumon-open', 'aria-label': title, title }, () => onOpenGpu(gpuIndex)),
      );
    }
    this.element = h(
      'article',
      { class: 'gpumon-gpu', tabindex: '0' },
      head,
      body,
      this.alerts.element,
    );
    this.element.addEventListener('keydown', (event) => this.onKey(event));
    this.element.addEventListener('click', ({ target }) => {
      if (this.isRow() && target instanceof Element && target.closest('button') === null) {
        this.toggle.click();
      }
    });
    this.element.addEventListener('blur', () => this.cursor.set(null));
  }

  update(gpu: GpuState, rows: readonly HolderRow[], context: CardContext): void {
    this.latest = [gpu, rows, context];
    this.now_ms = context.store.clock.now();
    this.updateOpen(context);
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
  draw(gpu: GpuState, { store, window, markers, bands, palette, rowLayout }: CardContext): void {
    if (this.visibility.onScreen) {
      const annotations = {
        markers: [...(markers.byGpu.get(gpu.index) ?? []), ...markers.ofAll],
        bands: bands.get(gpu.index) ?? [],
      };
      // A row has room for one line at most.
      const drawn = this.isRow() ? this.cells.slice(0, rowLayout === 'one' ? 1 : 0) : this.cells;
      for (const { id, cell } of drawn) {
        cell.draw(store.timeline.values(seriesKey(gpu, id)), window, annotations, palette);
      }
    }
  }

  private write(
    gpu: GpuState,
    rows: readonly HolderRow[],
    { store, window, rowLayout }: CardContext,
  ): void {
    const { now_ms } = this;
    const { now } = gpu;
    const healthy = now?.health.state === 'ok';
    const late = now !== null && now_ms - now.at_ms > store.gap_ms + 2000;
    const freshness: Freshness = { now_ms, stale: !healthy || late };
    setAttribute(this.element, 'data-gpu-index', String(gpu.index));
    setAttribute(this.element, 'data-gpu-health', now?.health.state ?? 'unread');
    setAttribute(
      this.element,
      'aria-label',
      trans.__('GPU %1, %2', gpu.index, plainText(gpu.name)),
    );
    setText(this.index, String(gpu.index));
    setText(this.name, plainText(gpu.name));
    setAttribute(this.index, 'title', joined([plainText(gpu.fullName), gpu.uuid, gpu.busId], '\n'));
    this.updateAlerts(gpu, rows, now_ms, store);
    for (const { id, cell } of this.cells) {
      cell.update(gpu, store.timeline.values(seriesKey(gpu, id)), window, freshness, !this.isRow());
    }
    this.bar.update(now, rows, rowLayout === 'columns');
    setShown(this.available, isUnified(now));
    // The label is not seen on a closed card.
    const label = this.isOpen() ? '' : trans.__('Unified memory');
    setText(this.available, joined([label, describeAvailable(now)], ': '));
    this.details?.update(gpu, freshness);
  }

  private updateAlerts(
    gpu: GpuState,
    rows: readonly HolderRow[],
    now_ms: number,
    store: Store,
  ): void {
    const alerts = gpuAlerts(gpu, rows, store, now_ms);
    const { text, title, level } = shortState(gpu, alerts, now_ms);
    setText(this.stateText, text);
    setAttribute(this.state, 'title', title || null);
    setAttribute(this.state, 'data-level', level);
    this.alerts.update(this.isOpen() ? alerts : null);
    setAttribute(this.element, 'data-worst-level', worstLevel(alerts.map((alert) => alert.level)));
  }

  private isOpen(): boolean {
    return this.toggle.getAttribute('aria-expanded') === 'true';
  }

  private isRow(): boolean {
    return this.element.hasAttribute('data-row');
  }

  private updateOpen({ openByDefault, rowLayout }: CardContext): void {
    const open = this.chosenOpen ?? openByDefault;
    const isRow = rowLayout !== null && !open;
    setAttribute(this.element, 'data-row', isRow ? '' : null);
    // Rows are reached one by one; Enter opens them.
    setAttribute(this.toggle, 'tabindex', isRow ? '-1' : null);
    setAttribute(this.toggle, 'aria-expanded', String(open));
    const title = open ? trans.__('Hide charts and details') : trans.__('Show charts and details');
    setAttribute(this.toggle, 'aria-label', title);
    setAttribute(this.toggle, 'title', title);
    setAttribute(this.element, 'data-open', isRow ? null : String(open));
    if (open && this.details === null && !this.loading) {
      void this.loadDetails();
    } else if (!open) {
      this.details?.element.remove();
      this.details = null;
    }
  }

  private async loadDetails(): Promise<void> {
    this.loading = true;
    const details = await part(import('./details')).then(
      ({ Details }) => new Details(this.options.invalidate),
      (error: unknown) => ({ element: h('div', {}, failedPart(error)), update: () => undefined }),
    );
    this.loading = false;
    if (this.isOpen()) {
      this.details = details;
      this.element.append(details.element);
      this.options.invalidate();
    }
  }

  /** Left and right move the cursor as a pointer does, up and down the focus; Escape returns to live. */
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
    } else if (event.key === 'ArrowUp') {
      focus(this.element.previousElementSibling);
    } else if (event.key === 'ArrowDown') {
      focus(this.element.nextElementSibling);
    } else {
      return;
    }
    event.preventDefault();
  }
}

function focus(element: Element | null): void {
  if (element instanceof HTMLElement) {
    element.focus();
  }
}
