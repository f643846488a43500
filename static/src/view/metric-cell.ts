/** One number of a GPU: its name, its value, and its line. */

import { wholeAxis } from '../chart/axis';
import { Chart } from '../chart/chart';
import type { Band, EventMarker, TimeWindow } from '../chart/content';
import { h, setAttribute, setStyle, setText } from '../lib/dom';
import { indexAt } from '../lib/timeline';
import type { GpuState } from '../model/gpu';
import { gpuTitle } from '../model/gpu-title';
import { isNearLimit, limitLineOf, limitOf, type Metric } from '../model/metric';
import { valueOf } from '../model/reading';
import { formatted } from '../model/unit';
import type { Cursor } from './cursor';
import { colorOf, type Palette } from './palette';
import { ReadingValue, type Freshness } from './value';

export class MetricCell {
  readonly element: HTMLElement;
  private readonly label = h('span', { class: 'gpumon-label' });
  private readonly value: ReadingValue;
  private readonly chartHost = h('div', { class: 'gpumon-chart', 'aria-hidden': 'true' });
  private readonly chart = new Chart(this.chartHost);
  /** The last that was known, so that the axis stays while a limit is not read. */
  private limit: ReturnType<typeof limitLineOf> = null;

  constructor(
    private readonly metric: Metric,
    private readonly cursor: Cursor,
  ) {
    this.value = new ReadingValue(metric.id);
    this.element = h(
      'div',
      { class: 'gpumon-cell', 'data-metric': String(metric.color) },
      this.label,
      this.value.element,
      this.chartHost,
    );
    cursor.track(this.chartHost, this.chart);
  }

  /** Puts something between the value and its line. */
  insertBeforeChart(...elements: HTMLElement[]): void {
    this.chartHost.before(...elements);
  }

  /** Shows the value of now, or of the moment pointed at; what it is out of `withLimit`. */
  update(
    gpu: GpuState,
    values: Float64Array,
    window: TimeWindow,
    freshness: Freshness,
    withLimit: boolean,
  ): void {
    const { metric } = this;
    setText(this.label, gpuTitle(metric.id, metric.label(), [gpu]));
    const limit = withLimit ? limitOf(metric, gpu.now) : null;
    const { rest } = formatted(metric.unit, null, limit);
    const at_ms = this.cursor.at_ms;
    const reading = gpu.now === null ? null : metric.read(gpu.now);
    const past =
      at_ms === null ? NaN : (values[indexAt(window.times_ms, at_ms, window.gap_ms)] ?? NaN);
    if (at_ms === null) {
      this.value.update(
        reading,
        (value) => formatted(metric.unit, value, limit).main,
        freshness,
        rest,
      );
    } else {
      this.value.showPast(
        Number.isNaN(past) ? null : formatted(metric.unit, past, limit).main,
        rest,
      );
    }
    this.limit = limitLineOf(metric, gpu) ?? this.limit;
    const shown = at_ms === null ? (valueOf(reading) ?? NaN) : past;
    const near =
      this.limit !== null &&
      isNearLimit(metric, this.limit.value, shown, at_ms === null ? gpu.now : null);
    setAttribute(this.value.element, 'data-near-limit', near ? '' : null);
    if (metric.unit.bounded) {
      // The style sheet may show it as a bar behind the number.
      setStyle(this.value.element, 'background-size', `${Number.isNaN(shown) ? 0 : shown}% 100%`);
    }
  }

  /** Draws the line; only for what is on the screen. */
  draw(
    values: Float64Array,
    window: TimeWindow,
    annotations: { markers: readonly EventMarker[]; bands: readonly Band[] },
    style: Palette,
  ): void {
    const { unit, color } = this.metric;
    const { value: limit = null, name } = this.limit ?? {};
    const lines = [{ values, color: colorOf(style, color) }];
    const [floor, ceiling] = wholeAxis(unit, limit, lines, window);
    this.chart.draw({
      axis: unit,
      style,
      window,
      lines,
      floor,
      ceiling,
      limit,
      ...(name !== undefined && { limitName: name }),
      at_ms: this.cursor.at_ms,
      ...annotations,
    });
  }

  /** Its line is about to be seen without another frame. */
  reveal(): void {
    this.chart.measure();
  }

  dispose(): void {
    this.chart.dispose();
  }
}
