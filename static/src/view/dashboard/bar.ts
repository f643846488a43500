/** The controls of a dashboard: which GPUs and charts, in which arrangement, and which part of the past. */

import { button, h, KeyedRows, setAttribute, setShown, setText } from '../../lib/dom';
import { duration } from '../../lib/format';
import { plainText } from '../../lib/text';
import { trans } from '../../lib/translation';
import {
  isPaused,
  rangeOf,
  resumed,
  SPANS_MIN,
  togglePaused,
  type DashboardState,
} from '../../model/dashboard/state';
import type { GpuState } from '../../model/gpu';
import { menu } from '../menu';
import { CompareMenu } from './compare-menu';
import { ChartList, type ChartListListener } from './chart-list';
import { keyHelp } from './keys';

/** More GPUs than so have their buttons in a menu. */
const IN_LINE = 16;

export class DashboardBar {
  readonly element: HTMLElement;
  private readonly gpus = group(trans.__('GPUs'));
  private readonly gpuChips = new KeyedRows(
    this.gpus,
    ({ index }: GpuState) => String(index),
    ({ index }) => ({
      element: chip(String(index), String(index), () =>
        this.change({ ...this.state, gpus: chosenWith(this.state.gpus, index, this.known) }),
      ),
    }),
  );
  /** Where there are too many GPUs for a line. */
  private readonly gpuCount = h('span');
  private readonly manyGpus = h('div');
  private readonly gpuMenu = menu(this.gpuCount, this.manyGpus);
  private readonly layout = group(trans.__('Layout'));
  private readonly spans = group(trans.__('Time range'));
  private readonly charts: ChartList;
  private readonly fit = chip(trans.__('Fit axes'), 'fit', () =>
    this.change({ ...this.state, fitted: !this.state.fitted }),
  );
  private readonly pause = chip(trans.__('Pause'), 'pause', () =>
    this.change(togglePaused(this.state, this.now_ms)),
  );
  private readonly compare = new CompareMenu((compared_ms) =>
    this.change({ ...this.state, compared_ms }),
  );
  private readonly help = menu(trans.__('Shortcuts'), h('div', {}, keyHelp()));
  private readonly range = h('span', { class: 'gpumon-range' });
  /** The GPUs that there are. */
  private known: readonly number[] = [];
  private now_ms = 0;

  constructor(
    private state: DashboardState,
    private readonly change: (state: DashboardState) => void,
    listener: ChartListListener,
    /** What adds marks, where that is possible; the server is asked for its history then, too. */
    marks?: HTMLElement,
  ) {
    this.charts = new ChartList(listener);
    this.layout.append(
      ...(['together', 'apart'] as const).map((layout) =>
        chip(layout === 'apart' ? trans.__('By GPU') : trans.__('Overlaid'), layout, () =>
          change({ ...this.state, layout }),
        ),
      ),
    );
    this.spans.append(
      ...SPANS_MIN.map((minutes) =>
        chip(duration(minutes * 60_000), String(minutes), () =>
          change({ ...resumed(this.state), span_ms: minutes * 60_000 }),
        ),
      ),
    );
    setAttribute(this.pause, 'title', trans.__('Pause the charts. Samples are still recorded.'));
    this.element = h(
      'div',
      { class: 'gpumon-controls' },
      this.gpuMenu,
      this.layout,
      this.spans,
      this.fit,
      this.pause,
      this.range,
      ...(marks === undefined ? [] : [marks, this.compare.element]),
      this.charts.element,
      this.help,
    );
  }

  update(
    state: DashboardState,
    gpus: readonly GpuState[],
    now_ms: number,
    charts: readonly string[],
  ): void {
    this.state = state;
    this.now_ms = now_ms;
    setShown(this.gpus, gpus.length > 1);
    this.placeGpus(gpus.length);
    setShown(this.layout, gpus.length > 1);
    this.known = gpus.map(({ index }) => index);
    this.gpuChips.update(gpus, ({ element }, { index, fullName }) => {
      press(element, state.gpus?.includes(index) ?? true);
      setAttribute(element, 'title', plainText(fullName));
    });
    const chosen = state.gpus?.length ?? gpus.length;
    setText(
      this.gpuCount,
      chosen < gpus.length
        ? trans.__('%1 of %2 GPUs', chosen, gpus.length)
        : trans._n('%1 GPU', '%1 GPUs', gpus.length),
    );
    pressOne(this.layout, state.layout);
    pressOne(this.spans, isPaused(state) ? null : String(state.span_ms / 60_000));
    this.charts.update(charts, state.charts === null, gpus);
    press(this.fit, state.fitted);
    press(this.pause, isPaused(state));
    const [from_ms] = rangeOf(state, now_ms);
    this.compare.update(state.compared_ms, from_ms);
    // While charts are paused, the head of the view shows the span.
    const isShown = !isPaused(state) && !isUsual(state.span_ms);
    setText(this.range, isShown ? trans.__('Last %1', duration(state.span_ms)) : '');
  }

  openHelp(): void {
    this.help.open = true;
    this.help.querySelector('summary')?.focus();
  }

  /** In a line of their own, or in a menu where that would be several. */
  private placeGpus(count: number): void {
    const isMany = count > IN_LINE;
    setShown(this.gpuMenu, isMany);
    if (isMany && this.gpus.parentElement !== this.manyGpus) {
      this.manyGpus.append(this.gpus);
    } else if (!isMany && this.gpus.parentElement !== this.element) {
      this.element.prepend(this.gpus);
    }
  }
}

/** Only this one where all were chosen; else with or without it. Without any, all are shown again. */
function chosenWith(
  chosen: readonly number[] | null,
  one: number,
  all: readonly number[],
): readonly number[] | null {
  const next =
    chosen === null ? [one] : all.filter((other) => chosen.includes(other) !== (other === one));
  return next.length === 0 || next.length === all.length ? null : next;
}

/** Whether a button says so. */
function isUsual(span_ms: number): boolean {
  return SPANS_MIN.some((minutes) => minutes * 60_000 === span_ms);
}

function group(label: string): HTMLElement {
  return h('div', { class: 'gpumon-group-of-chips', role: 'group', 'aria-label': label });
}

function chip(label: string, value: string, onClick: () => void): HTMLButtonElement {
  return button({ class: 'gpumon-chip', 'data-value': value }, onClick, label);
}

function press(button: Element, pressed: boolean): void {
  setAttribute(button, 'aria-pressed', String(pressed));
}

function pressOne(buttons: HTMLElement, value: string | null): void {
  for (const one of buttons.children) {
    press(one, one.getAttribute('data-value') === value);
  }
}
