/** One number of a GPU: its name, its value, and its line. */

import { h } from '../lib/dom';
import { placeAt, type Values } from '../lib/timeline';
import type { Mark } from '../model/event';
import type { Metric } from '../model/metric';
import { valueOf } from '../model/reading';
import type { GpuSample } from '../wire';
import { LineChart, type Window } from './line-chart';
import type { Moment } from './moment';
import type { Palette } from './palette';
import { ReadingValue, type Freshness } from './value';

export class MetricCell {
  readonly element: HTMLElement;
  private readonly value: ReadingValue;
  private readonly chartHost = h('div', { class: 'gpumon-chart', 'aria-hidden': 'true' });
  private chart: LineChart | null = null;
  private ceiling: number;

  constructor(
    private readonly metric: Metric,
    private readonly moment: Moment,
  ) {
    this.value = new ReadingValue(metric.id);
    this.ceiling = metric.ceiling;
    const label = h('span', { class: 'gpumon-label' }, metric.label);
    this.element = h(
      'div',
      { class: 'gpumon-cell', 'data-metric': metric.colour },
      label,
      this.value.element,
      this.chartHost,
    );
    this.chartHost.addEventListener('pointermove', (event) => {
      this.moment.set(this.chart?.timeAt(event.clientX) ?? null);
    });
    this.chartHost.addEventListener('pointerleave', () => {
      this.moment.set(null);
    });
  }

  /** Puts something between the value and its line. */
  insertBeforeChart(element: HTMLElement): void {
    this.element.insertBefore(element, this.chartHost);
  }

  /** Shows the value of now, or of the moment pointed at. */
  update(gpu: GpuSample | null, values: Values, window: Window, freshness: Freshness): void {
    const { metric } = this;
    const limit = gpu === null || metric.limit === null ? null : valueOf(metric.limit(gpu));
    const rest = metric.format(null, limit).rest;
    const at_ms = this.moment.at_ms;
    if (at_ms === null) {
      const reading = gpu === null ? null : metric.read(gpu);
      this.value.update(reading, (value) => metric.format(value, limit).main, freshness, rest);
    } else {
      const past = values[placeAt(window.times_ms, at_ms, window.gap_ms)] ?? null;
      this.value.showPast(past === null ? null : metric.format(past, limit).main, rest);
    }
    if (limit !== null) {
      this.ceiling = limit;
    }
  }

  /** Draws the line; only for what is on the screen. */
  draw(values: Values, window: Window, marks: readonly Mark[], palette: Palette): void {
    this.chart ??= new LineChart(this.chartHost, this.metric, palette);
    const known = this.ceiling > this.metric.ceiling || this.metric.limit === null;
    const highest = known ? this.ceiling : highestOf(values, this.metric.ceiling);
    // A little air above a limit that is drawn as a line; memory cannot pass its total.
    const air = this.metric.colour === 'power' ? 1.06 : 1;
    this.chart.draw({
      window,
      values,
      ceiling: highest * air,
      limit: known && air > 1 ? this.ceiling : null,
      at_ms: this.moment.at_ms,
      marks,
    });
  }

  setPalette(palette: Palette): void {
    this.chart?.setPalette(palette);
  }

  dispose(): void {
    this.chart?.dispose();
    this.chart = null;
  }
}

function highestOf(values: Values, least: number): number {
  return values.reduce<number>((highest, value) => Math.max(highest, value ?? 0), least);
}
