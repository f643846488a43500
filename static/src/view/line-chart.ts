/** One line over time on a canvas. The right edge is now; the moment pointed at is marked. */

import uPlot from 'uplot';

import { hourAndMinute, timeOfDay } from '../lib/format';
import { placeAt, type Values } from '../lib/timeline';
import type { Mark } from '../model/event';
import type { Metric } from '../model/metric';
import type { Palette } from './palette';

/** What is drawn. */
export interface ChartContent {
  window: Window;
  values: Values;
  /** The upper end of the vertical axis. */
  ceiling: number;
  /** A limit to mark; `null` where there is none. */
  limit: number | null;
  at_ms: number | null;
  /** What happened, to be marked at its time. */
  marks: readonly Mark[];
}

/** The part of the past that is shown. */
export interface Window {
  times_ms: number[];
  from_ms: number;
  to_ms: number;
  /** Times further apart than this have nothing between them. */
  gap_ms: number;
}

/** From this size on there is room for axes. */
const AXES_WIDTH_PX = 200;
const AXES_HEIGHT_PX = 60;
/** Room for the dot at the newest value. */
const EDGE_PX = 3;
const TICK_HALF_PX = 26;
const LONG_MS = 10 * 60_000;

export class LineChart {
  private plot: uPlot | null = null;
  private withAxes = false;
  private content: ChartContent | null = null;
  private readonly sizes: ResizeObserver;

  constructor(
    private readonly host: HTMLElement,
    private readonly metric: Metric,
    private palette: Palette,
  ) {
    this.sizes = new ResizeObserver(() => {
      this.fit();
    });
    this.sizes.observe(host);
  }

  draw(content: ChartContent): void {
    this.content = content;
    const plot = this.plot ?? this.fit();
    if (plot === null) {
      return;
    }
    plot.batch(() => {
      plot.setData([content.window.times_ms, content.values], false);
      plot.setScale('x', { min: content.window.from_ms, max: content.window.to_ms });
      plot.setScale('y', { min: this.metric.floor, max: content.ceiling });
    });
  }

  setPalette(palette: Palette): void {
    this.palette = palette;
    this.rebuild();
  }

  /** The time under a point of the screen; `null` where the chart is not drawn. */
  timeAt(clientX: number): number | null {
    if (this.plot === null) {
      return null;
    }
    const left = clientX - this.plot.over.getBoundingClientRect().left;
    return Math.round(this.plot.posToVal(left, 'x'));
  }

  dispose(): void {
    this.sizes.disconnect();
    this.plot?.destroy();
    this.plot = null;
  }

  private rebuild(): void {
    this.plot?.destroy();
    this.plot = null;
    this.fit();
  }

  /** Makes the plot as large as its place: anew where axes come or go, not at all where the place is hidden. */
  private fit(): uPlot | null {
    const width = this.host.clientWidth;
    const height = this.host.clientHeight;
    if (width === 0 || height === 0) {
      return null;
    }
    const withAxes = width >= AXES_WIDTH_PX && height >= AXES_HEIGHT_PX;
    if (this.plot !== null && withAxes === this.withAxes) {
      if (this.plot.width !== width || this.plot.height !== height) {
        this.plot.setSize({ width, height });
      }
      return this.plot;
    }
    this.plot?.destroy();
    this.withAxes = withAxes;
    this.plot = new uPlot(this.options(width, height), [[], []], this.host);
    if (this.content !== null) {
      this.draw(this.content);
    }
    return this.plot;
  }

  private options(width: number, height: number): uPlot.Options {
    const stroke = this.palette.lines[this.metric.colour];
    const axis = {
      stroke: this.palette.muted,
      font: `10px ${this.palette.font}`,
      ticks: { show: false },
      grid: { stroke: this.palette.grid, width: 1 },
    };
    return {
      width,
      height,
      ms: 1,
      legend: { show: false },
      cursor: { show: false },
      select: { show: false, left: 0, top: 0, width: 0, height: 0 },
      padding: this.withAxes ? [6, EDGE_PX + 2, 0, 0] : [EDGE_PX, EDGE_PX, 1, 0],
      scales: { x: { time: true, auto: false }, y: { auto: false } },
      series: [
        {},
        {
          stroke,
          fill: translucent(stroke),
          width: 1.5,
          spanGaps: false,
          points: { show: false },
        },
      ],
      axes: this.withAxes
        ? [
            {
              ...axis,
              grid: { show: false },
              size: 18,
              gap: 3,
              space: 74,
              values: (plot, times) =>
                times.map((time) => {
                  // Half of a label at the very edge would stand on the other axis.
                  const isCut = plot.valToPos(time, 'x') < TICK_HALF_PX;
                  return isCut ? '' : this.isLong() ? hourAndMinute(time) : timeOfDay(time);
                }),
            },
            {
              ...axis,
              size: 50,
              gap: 5,
              splits: () => {
                const top = this.content?.limit ?? this.content?.ceiling ?? this.metric.ceiling;
                return [this.metric.floor, (this.metric.floor + top) / 2, top];
              },
              values: (_plot, values) => values.map((value, i) => (i === 1 ? '' : this.metric.tick(value))),
            },
          ]
        : [
            { show: false, size: 0 },
            { show: false, size: 0 },
          ],
      hooks: {
        draw: [
          (plot) => {
            this.mark(plot);
          },
        ],
      },
    };
  }

  /** Whether so much time is shown that seconds say nothing. */
  private isLong(): boolean {
    return this.content !== null && this.content.window.to_ms - this.content.window.from_ms > LONG_MS;
  }

  /** Draws what stands above the line: the limit, the moment pointed at, or the newest value. */
  private mark(plot: uPlot): void {
    const content = this.content;
    if (content === null) {
      return;
    }
    const { ctx, bbox } = plot;
    const ratio = uPlot.pxRatio;
    ctx.save();
    if (!this.withAxes) {
      ctx.fillStyle = this.palette.grid;
      ctx.fillRect(bbox.left, bbox.top + bbox.height - ratio, bbox.width, ratio);
    }
    if (content.limit !== null && content.limit < content.ceiling) {
      const y = Math.round(plot.valToPos(content.limit, 'y', true));
      ctx.strokeStyle = this.palette.muted;
      ctx.lineWidth = ratio;
      ctx.setLineDash([3 * ratio, 3 * ratio]);
      ctx.beginPath();
      ctx.moveTo(bbox.left, y);
      ctx.lineTo(bbox.left + bbox.width, y);
      ctx.stroke();
      ctx.setLineDash([]);
    }
    this.markEvents(plot, content);
    const { at_ms, window } = content;
    const place = at_ms === null ? window.times_ms.length - 1 : placeAt(window.times_ms, at_ms, window.gap_ms);
    const time = window.times_ms[place];
    const value = content.values[place];
    if (at_ms !== null && at_ms >= window.from_ms && at_ms <= window.to_ms) {
      const x = Math.round(plot.valToPos(at_ms, 'x', true));
      ctx.fillStyle = this.palette.text;
      ctx.globalAlpha = 0.5;
      ctx.fillRect(x, bbox.top, ratio, bbox.height);
      ctx.globalAlpha = 1;
    }
    if (time !== undefined && time >= window.from_ms && value !== null && value !== undefined) {
      ctx.fillStyle = this.palette.lines[this.metric.colour];
      ctx.beginPath();
      ctx.arc(plot.valToPos(time, 'x', true), plot.valToPos(value, 'y', true), 2.5 * ratio, 0, 2 * Math.PI);
      ctx.fill();
    }
    ctx.restore();
  }

  /** Draws a thin line at what happened, and a wedge at its foot on the time axis. */
  private markEvents(plot: uPlot, { marks, window }: ChartContent): void {
    const { ctx, bbox } = plot;
    const half = 3.5 * uPlot.pxRatio;
    const foot = bbox.top + bbox.height;
    for (const { at_ms, level } of marks) {
      if (at_ms < window.from_ms || at_ms > window.to_ms) {
        continue;
      }
      const x = Math.round(plot.valToPos(at_ms, 'x', true));
      ctx.fillStyle = this.palette.levels[level];
      ctx.globalAlpha = 0.55;
      ctx.fillRect(x, bbox.top, uPlot.pxRatio, bbox.height);
      ctx.globalAlpha = 1;
      ctx.beginPath();
      ctx.moveTo(x - half, foot);
      ctx.lineTo(x + half, foot);
      ctx.lineTo(x, foot - 2 * half);
      ctx.fill();
    }
  }
}

/** The colour of a line, thin enough to lie under it. */
function translucent(colour: string): string {
  return /^#[\da-f]{6}$/i.test(colour) ? `${colour}24` : 'transparent';
}
