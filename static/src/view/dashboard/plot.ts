/** One chart of a dashboard: what it is, what each of its lines says, and the lines. */

import { fittedAxis, wholeAxis } from '../../chart/axis';
import { Chart } from '../../chart/chart';
import type { ChartLine } from '../../chart/content';
import { h, setAttribute, setText } from '../../lib/dom';
import { trans } from '../../lib/translation';
import { tooltipValues, nearestLine } from '../../model/dashboard/tooltip-values';
import type { Plot, PlotLine } from '../../model/dashboard/plots';
import { momentText, rangeText } from '../../model/dashboard/moment';
import type { Cursor } from '../cursor';
import { colorOf, dashOf } from '../palette';
import { part } from '../part';
import { Visibility } from '../visibility';
import { notesAt, type Annotations } from './annotations';
import { addGestures, type GestureListener } from './gestures';
import { earlierValue, pastRange, recorded, shownValue, type PlotContext } from './context';
import { Legend, type LegendListener } from './legend';
import type { CopyFormat } from './plot-copy';
import { plotMenu, type PlotAction } from './plot-menu';
import { addReorder } from './reorder';
import { TOOLTIP_PX, WIDE_TOOLTIP_PX, type Tooltip } from './tooltip';

/** More values than so are not read. */
const MOST_ROWS = 10;
/** The strokes of lines that are compared with. */
const EARLIER_DASH = [1.5, 3.5];
/** Within this distance a line is pointed at. */
const NEAR_PX = 12;

export interface PlotListener
  extends Omit<LegendListener, 'onPoint'>, Pick<GestureListener, 'onZoom' | 'onZoomBy' | 'onGrab'> {
  /** The axis of a chart is to show these values alone, or all of them. */
  onAxis: (chart: string, range: readonly [number, number] | null) => void;
  onReset: (chart: string) => void;
  /** A chart is wanted before or after another one. */
  onPlace: (chart: string, target: string, after: boolean) => void;
  onStep: (chart: string, step: 1 | -1) => void;
  onRemove: (chart: string) => void;
}

export class PlotView {
  readonly element: HTMLElement;
  private readonly visibility = new Visibility();
  /** The arguments of the last drawing, which may have been skipped. */
  private latest: [plot: Plot, context: PlotContext, annotations: Annotations] | null = null;
  /** From the lowest to the highest value of the axis that was drawn. */
  private range = 0;
  private readonly title = h('h3', { title: trans.__('Drag to arrange charts') });
  private readonly legend: Legend;
  private readonly host = h('div', {
    class: 'gpumon-chart gpumon-plot-chart',
    'aria-hidden': 'true',
  });
  private readonly chart = new Chart(this.host);
  /** Where the pointer is, and how far it is to the right edge of the view. */
  private pointer: { clientY: number; space_px: number; upward: boolean } | null = null;
  /** The line that somebody points at by its name. */
  private pointed: string | null = null;

  constructor(
    private readonly cursor: Cursor,
    private readonly tooltip: Tooltip,
    invalidate: () => void,
    listener: PlotListener,
  ) {
    const onPoint = (id: string | null): void => {
      this.pointed = id;
      invalidate();
    };
    this.legend = new Legend({ ...listener, onPoint }, invalidate);
    const ownChart = (): string => this.latest?.[0].chart ?? '';
    const silent =
      (run: () => void): PlotAction['run'] =>
      () => {
        run();
        return null;
      };
    const actions = (): PlotAction[] => [
      ...this.copyActions(),
      { label: trans.__('Move left'), run: silent(() => listener.onStep(ownChart(), -1)) },
      { label: trans.__('Move right'), run: silent(() => listener.onStep(ownChart(), 1)) },
      { label: trans.__('Remove chart'), run: silent(() => listener.onRemove(ownChart())) },
    ];
    const head = h('div', { class: 'gpumon-plot-head' }, this.title, plotMenu(actions));
    const caption = h('figcaption', {}, head, this.legend.element);
    this.element = h('figure', { class: 'gpumon-plot' }, caption, this.host);
    addReorder(this.element, this.title, {
      id: ownChart,
      onDrop: (chart, after) => listener.onPlace(chart, ownChart(), after),
    });
    cursor.track(this.host, this.chart);
    this.followPointer();
    const { chart } = this;
    const id = (): string => this.latest?.[0].id ?? '';
    addGestures(this.host, {
      ...listener,
      timeAt: (clientX) => chart.timeAt(clientX),
      pixelTime: () => chart.pixel_ms,
      valueAt: (clientY) => chart.valueAt(clientY)?.value ?? null,
      isOnAxis: (clientX) => chart.isOnAxis(clientX),
      onAxis: (a, b) => listener.onAxis(id(), [a, b]),
      onReset: () => listener.onReset(id()),
    });
  }

  update(plot: Plot, context: PlotContext): void {
    if (this.visibility.skips(context.freshness.now_ms)) {
      return;
    }
    setAttribute(this.element, 'data-plot', plot.key);
    setText(this.title, plot.title);
    this.legend.update([...plot.lines, ...plot.stack], plot.unit, this.range, context);
  }

  /** Draws the lines, where they are seen. */
  draw(plot: Plot, context: PlotContext, annotations: Annotations): void {
    this.latest = [plot, context, annotations];
    if (!this.visibility.onScreen) {
      return;
    }
    const { window, palette } = context;
    const { unit } = plot;
    const near = this.updateTooltip(plot, context, annotations);
    const drawn = (all: readonly PlotLine[]): ChartLine[] =>
      all
        .filter(({ id }) => !context.hidden.has(id))
        .map((line) => ({
          ...recorded(line, context),
          id: line.id,
          color: colorOf(palette, line.color),
          ...dashOf(line.color),
          faint: this.pointed !== null && this.pointed !== line.id,
          strong: line.id === near,
        }));
    const lines = [...this.earlier(plot, context), ...drawn(plot.lines)];
    const stack = drawn(plot.stack);
    const fitted = context.fitted ? fittedAxis(unit, stack.length > 0, lines, window) : null;
    const zoomed = context.axes[plot.id] ?? fitted;
    const [floor, ceiling] = zoomed ?? wholeAxis(unit, plot.limit, lines, window);
    this.range = ceiling - floor;
    this.chart.draw({
      axis: unit,
      style: palette,
      window,
      floor,
      ceiling,
      clipped: zoomed !== null,
      lines,
      stack,
      limit: plot.limit,
      ...(plot.limitName !== undefined && { limitName: plot.limitName }),
      ...annotations,
      at_ms: this.cursor.at_ms,
    });
  }

  /** The same lines in the span that they are compared with. */
  private earlier({ lines }: Plot, { compared, hidden, palette }: PlotContext): ChartLine[] {
    if (compared === null) {
      return [];
    }
    return lines
      .filter(({ id }) => !hidden.has(id))
      .map(({ id, series, color }) => ({
        id: `earlier:${id}`,
        values: compared.values(series),
        times_ms: compared.times_ms,
        color: colorOf(palette, color),
        dash: EARLIER_DASH,
        faint: this.pointed !== null && this.pointed !== id,
      }));
  }

  /** It was scrolled into view, or out of it. */
  setOnScreen(onScreen: boolean): void {
    this.visibility.onScreen = onScreen;
    if (onScreen && this.latest !== null) {
      this.redraw(this.latest);
    }
  }

  /** Draws once more what may be some time ago: times are to be read at once, since the timeline moves them. */
  private redraw([plot, given, annotations]: NonNullable<typeof this.latest>): [Plot, PlotContext] {
    const context = { ...given, window: { ...given.window, times_ms: given.timeline.times_ms } };
    this.update(plot, context);
    this.draw(plot, context, annotations);
    return [plot, context];
  }

  /** The pixels of the device that its chart is wide; 0 until it is seen. */
  get width(): number {
    return this.chart.width_px * this.chart.px;
  }

  reveal(): void {
    this.visibility.onScreen = true;
    this.chart.measure();
  }

  dispose(): void {
    this.tooltip.hide(this.host);
    this.chart.dispose();
  }

  private copyActions({ latest } = this): PlotAction[] {
    if (latest === null) {
      return [];
    }
    // It is there when somebody clicks: a browser lends its clipboard for a moment only.
    const loading = part(import('./plot-copy'));
    const copy = (format: CopyFormat) => async (): Promise<string> => {
      const { copyPlot } = await loading;
      // All of a copy is of one moment.
      return copyPlot(format, this.chart, ...this.redraw(this.latest ?? latest));
    };
    return [
      { label: trans.__('Copy as PNG'), run: copy('png') },
      { label: trans.__('Copy as SVG'), run: copy('svg') },
      { label: trans.__('Copy as CSV'), run: copy('csv') },
    ];
  }

  private followPointer(): void {
    const { host } = this;
    host.addEventListener('pointermove', ({ clientY }) => {
      const view = host.closest('.gpumon') ?? host;
      const { left, top, bottom } = host.getBoundingClientRect();
      const upward = (top + bottom) / 2 > window.innerHeight / 2;
      this.pointer = { clientY, space_px: view.getBoundingClientRect().right - left, upward };
    });
    host.addEventListener('pointerleave', () => {
      this.pointer = null;
      this.tooltip.hide(host);
    });
  }

  /** Tells the values at the pointer; returns the line that it is at. */
  private updateTooltip(plot: Plot, context: PlotContext, annotations: Annotations): string | null {
    const { chart, pointer, host } = this;
    const { at_ms } = this.cursor;
    const x_px = at_ms === null ? null : chart.xOf(at_ms);
    if (pointer === null || at_ms === null || x_px === null) {
      this.tooltip.hide(host);
      return null;
    }
    const valued = (line: PlotLine): PlotLine & { value: number } => ({
      ...line,
      value: shownValue(line, context),
    });
    const isShown = ({ id }: PlotLine): boolean => !context.hidden.has(id);
    const lines = plot.lines.filter(isShown).map(valued);
    const at = chart.valueAt(pointer.clientY);
    const near =
      at === null || lines.length < 2 ? null : nearestLine(lines, at.value, NEAR_PX * at.pixel);
    const { rows, more } = tooltipValues(
      [...lines, ...plot.stack.filter(isShown).map(valued)],
      near,
      MOST_ROWS,
    );
    const ranges = rows.map((line) => rangeText(plot.unit, pastRange(line, at_ms, context)));
    if (context.compared !== null) {
      rows.forEach((line, i) => {
        const earlier = earlierValue(line, at_ms, context);
        ranges[i] = Number.isNaN(earlier) ? '' : trans.__('earlier: %1', plot.unit.text(earlier));
      });
    }
    const areRanges = ranges.some((range) => range !== '');
    const toLeft = x_px + (areRanges ? WIDE_TOOLTIP_PX : TOOLTIP_PX) > pointer.space_px;
    this.tooltip.show(
      host,
      { x_px, width_px: chart.width_px, toLeft, upward: pointer.upward },
      momentText(at_ms, context.mean_ms, context.freshness.now_ms),
      rows.map(({ id, label, name, color, value }, i) => ({
        id,
        label: name ?? label,
        color: colorOf(context.palette, color),
        paint: color,
        text: plot.unit.text(value),
        range: ranges[i] ?? '',
        near: id === near,
      })),
      more,
      notesAt(at_ms, annotations, context.window).map(({ label, title, color }) => ({
        text: title ?? label,
        color,
      })),
    );
    return near;
  }
}
