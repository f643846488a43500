/** One number of a GPU: its name, its value, and its line. */

import { Chart } from '../chart/chart';
import type { Band, EventMarker, TimeWindow } from '../chart/content';
import { h } from '../lib/dom';
import { indexAt } from '../lib/timeline';
import { limitOf, type Metric } from '../model/metric';
import { formatted } from '../model/unit';
import type { GpuSample } from '../wire';
import type { Cursor } from './cursor';
import { colorOf, type Palette } from './palette';
import { ReadingValue, type Freshness } from './value';

export class MetricCell {
  readonly element: HTMLElement;
  private readonly value: ReadingValue;
  private readonly chartHost = h('div', { class: 'gpumon-chart', 'aria-hidden': 'true' });
  private readonly chart = new Chart(this.chartHost);
  private ceiling: number;

  constructor(
    private readonly metric: Metric,
    private readonly cursor: Cursor,
  ) {
    this.value = new ReadingValue(metric.id);
    this.ceiling = metric.unit.ceiling;
    const label = h('span', { class: 'gpumon-label' }, metric.label());
    this.element = h(
      'div',
      { class: 'gpumon-cell', 'data-metric': String(metric.color) },
      label,
      this.value.element,
      this.chartHost,
    );
    cursor.track(this.chartHost, this.chart);
  }

  /** Puts something between the value and its line. */
  insertBeforeChart(element: HTMLElement): void {
    this.element.insertBefore(element, this.chartHost);
  }

  /** Shows the value of now, or of the moment pointed at. */
  update(gpu: GpuSample | null, values: Float64Array, window: TimeWindow, freshness: Freshness): void {
    const { metric } = this;
    const limit = limitOf(metric, gpu);
    const { rest } = formatted(metric.unit, null, limit);
    const at_ms = this.cursor.at_ms;
    if (at_ms === null) {
      const reading = gpu === null ? null : metric.read(gpu);
      this.value.update(reading, (value) => formatted(metric.unit, value, limit).main, freshness, rest);
    } else {
      const past = values[indexAt(window.times_ms, at_ms, window.gap_ms)] ?? NaN;
      this.value.showPast(Number.isNaN(past) ? null : formatted(metric.unit, past, limit).main, rest);
    }
    if (limit !== null) {
      this.ceiling = limit;
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
    const known = this.ceiling > unit.ceiling || this.metric.limit === null;
    const highest = known ? this.ceiling : highestOf(values, unit.ceiling);
    // A little air above a limit that is drawn as a line; memory cannot pass its total.
    const air = color === 'power' ? 1.06 : 1;
    this.chart.draw({
      axis: unit,
      style,
      window,
      lines: [{ values, color: colorOf(style, color) }],
      floor: unit.floor,
      ceiling: highest * air,
      limit: known && air > 1 ? this.ceiling : null,
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

function highestOf(values: Float64Array, least: number): number {
  return values.reduce((highest, value) => (value > highest ? value : highest), least);
}
