/** One chart of a dashboard: what it is, what each of its lines says, and the lines. */

import { Chart } from '../../chart/chart';
import type { Band, ChartLine, EventMarker, TimeWindow } from '../../chart/content';
import { roundUp } from '../../chart/ticks';
import { h, KeyedRows, setAttribute, setStyle, setText } from '../../lib/dom';
import { firstAfter, indexAt, type Timeline } from '../../lib/timeline';
import type { Plot, PlotLine } from '../../model/dashboard/plots';
import type { Unit } from '../../model/unit';
import type { Cursor } from '../cursor';
import { colorOf, dashOf, setPaint, type Palette } from '../palette';
import { Visibility } from '../visibility';
import { ReadingValue, type Freshness } from '../value';
import { addBrush } from './brush';

/** What all charts of one drawing share. */
export interface PlotContext {
  timeline: Timeline;
  /** What the driver itself recorded, by the name of its series. */
  traces: ReadonlyMap<string, Timeline>;
  window: TimeWindow;
  palette: Palette;
  freshness: Freshness;
  /** The moment whose values are told; `null` for now. */
  at_ms: number | null;
}

export interface PlotListener {
  onZoom: (a_ms: number, b_ms: number) => void;
  onReset: () => void;
}

export class PlotView {
  readonly element: HTMLElement;
  private readonly visibility = new Visibility();
  /** The arguments of the last drawing, which may have been skipped. */
  private latest: [plot: Plot, context: PlotContext, bands: readonly Band[], markers: readonly EventMarker[]] | null =
    null;
  private readonly title = h('h3');
  private readonly readouts = h('dl', { class: 'gpumon-readouts' });
  private readonly values = new KeyedRows(
    this.readouts,
    ({ series }: PlotLine) => series,
    (line) => this.newReadout(line),
  );
  private readonly host = h('div', { class: 'gpumon-chart gpumon-plot-chart', 'aria-hidden': 'true' });
  private readonly chart = new Chart(this.host);
  /** The line that somebody points at by its name. */
  private pointed: string | null = null;

  constructor(
    private readonly cursor: Cursor,
    private readonly invalidate: () => void,
    listener: PlotListener,
  ) {
    this.element = h('figure', { class: 'gpumon-plot' }, h('figcaption', {}, this.title, this.readouts), this.host);
    cursor.track(this.host, this.chart);
    addBrush(this.host, { ...listener, timeAt: (clientX) => this.chart.timeAt(clientX) });
  }

  update(plot: Plot, context: PlotContext): void {
    if (this.visibility.skips(context.freshness.now_ms)) {
      return;
    }
    setAttribute(this.element, 'data-plot', plot.key);
    setText(this.title, plot.title);
    this.values.update([...plot.lines, ...plot.stack], (row, line) => row.update(line, plot.unit, context));
  }

  /** Draws the lines, where they are seen. */
  draw(plot: Plot, context: PlotContext, bands: readonly Band[], markers: readonly EventMarker[]): void {
    this.latest = [plot, context, bands, markers];
    if (!this.visibility.onScreen) {
      return;
    }
    const { window, palette } = context;
    const { unit } = plot;
    const drawn = (line: PlotLine): ChartLine => ({
      ...recorded(line, context),
      color: colorOf(palette, line.color),
      ...dashOf(line.color),
      faint: this.pointed !== null && this.pointed !== line.series,
    });
    const lines = plot.lines.map(drawn);
    const ceiling = unit.bounded
      ? unit.ceiling
      : Math.max((plot.limit ?? 0) * airOf(plot), ceilingOf(unit, plot.limit === null ? highestOf(lines, window) : 0));
    this.chart.draw({
      axis: unit,
      style: palette,
      window,
      floor: unit.floor,
      ceiling,
      lines,
      stack: plot.stack.map(drawn),
      limit: plot.limit,
      ...(plot.limitName !== undefined && { limitName: plot.limitName }),
      bands,
      markers,
      at_ms: this.cursor.at_ms,
    });
  }

  /** It was scrolled into view, or out of it. */
  setOnScreen(onScreen: boolean): void {
    this.visibility.onScreen = onScreen;
    if (onScreen && this.latest !== null) {
      const [plot, given, bands, markers] = this.latest;
      const context = { ...given, window: { ...given.window, times_ms: given.timeline.times_ms } };
      this.update(plot, context);
      this.draw(plot, context, bands, markers);
    }
  }

  reveal(): void {
    this.visibility.onScreen = true;
    this.chart.measure();
  }

  dispose(): void {
    this.chart.dispose();
  }

  private newReadout(line: PlotLine): Readout {
    return new Readout(line, (pointed) => {
      this.pointed = pointed ? line.series : null;
      this.invalidate();
    });
  }
}

/** The name of a line and its value, of now or of the moment pointed at. */
class Readout {
  readonly element: HTMLElement;
  private readonly label = h('dt', {});
  private readonly swatch = h('span', { class: 'gpumon-swatch', 'aria-hidden': 'true' });
  private readonly value: ReadingValue;

  constructor({ series }: PlotLine, onPointed: (pointed: boolean) => void) {
    this.value = new ReadingValue(series);
    this.element = h('div', {}, this.swatch, this.label, h('dd', {}, this.value.element));
    this.element.addEventListener('pointerenter', () => onPointed(true));
    this.element.addEventListener('pointerleave', () => onPointed(false));
  }

  update(line: PlotLine, unit: Unit, context: PlotContext): void {
    const { at_ms } = context;
    setText(this.label, line.label);
    if (typeof line.color === 'number') {
      setPaint(this.swatch, line.color);
    } else {
      setStyle(this.swatch, 'background', colorOf(context.palette, line.color));
    }
    if (at_ms === null) {
      this.value.update(line.now, unit.text, context.freshness);
      return;
    }
    const { values, times_ms } = recorded(line, context);
    const times = times_ms ?? context.window.times_ms;
    const past = values[indexAt(times, at_ms, context.window.gap_ms)] ?? NaN;
    this.value.showPast(Number.isNaN(past) ? null : unit.text(past));
  }
}

/** What the driver recorded itself, where there is such a record; else what was read. */
function recorded({ series, trace }: PlotLine, { timeline, traces }: PlotContext): Omit<ChartLine, 'color'> {
  const own = trace === undefined ? undefined : traces.get(trace);
  return own === undefined || trace === undefined
    ? { values: timeline.values(series) }
    : { values: own.values(trace), times_ms: own.times_ms };
}

/** The highest value that is shown; 0 where there is none. */
function highestOf(lines: readonly ChartLine[], window: TimeWindow): number {
  let highest = 0;
  for (const { values, times_ms = window.times_ms } of lines) {
    const end = firstAfter(times_ms, window.to_ms);
    for (let i = firstAfter(times_ms, window.from_ms); i < end; i += 1) {
      const value = values[i] ?? NaN;
      highest = value > highest ? value : highest;
    }
  }
  return highest;
}

function ceilingOf(unit: Unit, highest: number): number {
  return highest <= unit.ceiling ? unit.ceiling : roundUp(highest, unit.base);
}

/** A little air above a limit that values may touch; memory cannot pass its total. */
function airOf({ unit }: Plot): number {
  return unit.base === 1 ? 1.06 : 1;
}
