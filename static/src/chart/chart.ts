/** Lines over time on a canvas, on a wall clock; drawn anew only where somebody would see the difference. */

import { hourAndMinute, timeOfDay } from '../lib/format';
import { firstAfter, indexAt } from '../lib/timeline';
import type { ChartContent, ChartLine, ChartStyle, PlotArea } from './content';
import { addLine } from './line';
import { frameSignature, isVisibleChange, type FrameSignature } from './frame-diff';
import { timeTicks, valueTicks } from './ticks';

/** From this size on there is room for axes. */
const AXES_WIDTH_PX = 200;
const AXES_HEIGHT_PX = 60;
const LEFT_PX = 60;
const BOTTOM_PX = 16;
const TOP_PX = 6;
/** Room for the dot at the newest value. */
const EDGE_PX = 4;
const TIME_APART_PX = 74;
const VALUE_APART_PX = 26;
/** The height of letters, with a little air. */
const LETTERS_PX = 14;
const MINUTE_MS = 60_000;
const FILL_ALPHA = 0.14;
const STACK_ALPHA = 0.6;
const FAINT_ALPHA = 0.2;
const NO_DASH: number[] = [];
/** More lines than so are drawn thinner, and without dots. */
const CROWD = 8;
/** How far beyond its area a line is drawn that is clipped: half of its width. */
const CLIP_PX = 1.5;

export class Chart {
  private context: CanvasRenderingContext2D | null = null;
  private sizes: ResizeObserver | null = null;
  private content: ChartContent | null = null;
  /** What the picture shows, and since when; `null` where it has to be drawn anew. */
  private drawn: FrameSignature | null = null;
  private drawn_ms = 0;
  private font = '';
  private width = 0;
  private height = 0;

  /** The canvas is made when something is first drawn. */
  constructor(private readonly host: HTMLElement) {}

  /** Measures the size at once, where no frame will be drawn before it is visible. */
  measure(): void {
    this.resize(this.host.clientWidth, this.host.clientHeight);
  }

  draw(content: ChartContent): void {
    if (this.sizes === null) {
      this.open();
    }
    if (content.style !== this.content?.style) {
      this.drawn = null;
    }
    this.content = content;
    this.paint();
  }

  /** The time under a point of the screen; `null` where the chart is not drawn. */
  timeAt(clientX: number): number | null {
    const plotArea = this.plotArea();
    if (plotArea === null) {
      return null;
    }
    const x = (clientX - this.host.getBoundingClientRect().left) * ratio();
    const share = Math.min(1, Math.max(0, (x - plotArea.left) / (plotArea.right - plotArea.left)));
    return Math.round(plotArea.from_ms + share * (plotArea.to_ms - plotArea.from_ms));
  }

  /** The value under a point of the screen, and how much a pixel is; `null` where the chart is not drawn. */
  valueAt(clientY: number): { value: number; pixel: number } | null {
    const area = this.plotArea();
    if (area === null || this.content === null) {
      return null;
    }
    const { floor, ceiling } = this.content;
    const perPixel = (ceiling - floor) / (area.bottom - area.top);
    const y = (clientY - this.host.getBoundingClientRect().top) * ratio();
    return { value: floor + (area.bottom - y) * perPixel, pixel: perPixel * ratio() };
  }

  /** Where a time is, in pixels of the page from the left edge; `null` where it is not shown. */
  xOf(at_ms: number): number | null {
    const area = this.plotArea();
    return area === null || at_ms < area.from_ms || at_ms > area.to_ms ? null : area.x(at_ms) / ratio();
  }

  /** Whether a point of the screen is on the axis of values. */
  isOnAxis(clientX: number): boolean {
    const area = this.plotArea();
    const x = (clientX - this.host.getBoundingClientRect().left) * ratio();
    return area !== null && this.hasAxes() && x < area.left;
  }

  get width_px(): number {
    return this.width / ratio();
  }

  dispose(): void {
    this.sizes?.disconnect();
    this.context?.canvas.remove();
  }

  private open(): void {
    const canvas = document.createElement('canvas');
    this.context = canvas.getContext('2d');
    this.host.append(canvas);
    // It tells the size for the first time in the frame to come, when all is laid out anyway.
    this.sizes = new ResizeObserver((entries) => {
      for (const { contentRect } of entries) {
        this.resize(contentRect.width, contentRect.height);
      }
      this.paint();
    });
    this.sizes.observe(this.host);
  }

  private resize(width_px: number, height_px: number): void {
    this.width = Math.round(width_px * ratio());
    this.height = Math.round(height_px * ratio());
  }

  private plotArea(): PlotArea | null {
    const { content, width, height } = this;
    if (content === null || width === 0 || height === 0) {
      return null;
    }
    const px = ratio();
    const withAxes = this.hasAxes();
    const left = Math.round((withAxes ? LEFT_PX : EDGE_PX) * px);
    const right = width - Math.round(EDGE_PX * px);
    const top = Math.round((withAxes ? TOP_PX : EDGE_PX) * px);
    const bottom = height - Math.round((withAxes ? BOTTOM_PX : 1) * px);
    const { window, floor, ceiling, clipped = false } = content;
    const beyond = clipped ? 2 * CLIP_PX * px : 0;
    const scale = (bottom - top) / (ceiling - floor);
    const pixel_ms = (window.to_ms - window.from_ms) / (right - left);
    const to_ms = Math.ceil(window.to_ms / pixel_ms) * pixel_ms;
    const from_ms = to_ms - (right - left) * pixel_ms;
    return {
      left,
      right,
      top,
      bottom,
      from_ms,
      to_ms,
      x: (at_ms) => left + (at_ms - from_ms) / pixel_ms,
      y: (value) => Math.min(bottom + beyond, Math.max(top - beyond, bottom - (value - floor) * scale)),
    };
  }

  private hasAxes(): boolean {
    return this.width >= AXES_WIDTH_PX * ratio() && this.height >= AXES_HEIGHT_PX * ratio();
  }

  private paint(): void {
    const { content } = this;
    const plotArea = this.plotArea();
    const ctx = this.context;
    if (content === null || plotArea === null || ctx === null) {
      return;
    }
    const signature = frameSignature(content, plotArea);
    const now_ms = performance.now();
    if (this.drawn !== null && !isVisibleChange(this.drawn, signature, now_ms - this.drawn_ms)) {
      return;
    }
    this.drawn = signature;
    this.drawn_ms = now_ms;
    const { canvas } = ctx;
    if (canvas.width !== this.width || canvas.height !== this.height) {
      canvas.width = this.width;
      canvas.height = this.height;
      this.font = '';
    }
    this.setFont(ctx, content.style.font);
    ctx.clearRect(0, 0, this.width, this.height);
    paintBands(ctx, plotArea, content);
    this.paintGrid(ctx, plotArea, content);
    ctx.save();
    ctx.beginPath();
    const [clipTop, clipBottom] = content.clipped === true ? clipOf(plotArea) : [0, this.height];
    ctx.rect(plotArea.left, clipTop, plotArea.right - plotArea.left + EDGE_PX * ratio(), clipBottom - clipTop);
    ctx.clip();
    paintLines(ctx, plotArea, content);
    ctx.restore();
    paintMarkers(ctx, plotArea, content);
    paintCursor(ctx, plotArea, content);
  }

  /** Letters are chosen once, since choosing them has the browser find out all styles. */
  private setFont(ctx: CanvasRenderingContext2D, family: string): void {
    const font = `${10 * ratio()}px ${family}`;
    if (font !== this.font) {
      this.font = font;
      ctx.font = font;
    }
  }

  private paintGrid(ctx: CanvasRenderingContext2D, plotArea: PlotArea, content: ChartContent): void {
    const { floor, ceiling, limit, axis, style } = content;
    const px = ratio();
    const { left, right, top, bottom } = plotArea;
    const limitY =
      typeof limit === 'number' && limit >= floor && limit <= ceiling ? Math.round(plotArea.y(limit)) : null;
    ctx.lineWidth = px;
    if (!this.hasAxes()) {
      ctx.fillStyle = style.grid;
      ctx.fillRect(left, bottom - px, right - left, px);
    } else {
      ctx.textBaseline = 'middle';
      ctx.textAlign = 'right';
      const values = valueTicks(floor, ceiling, (bottom - top) / (VALUE_APART_PX * px), axis.base);
      const texts = axis.ticks(values);
      values.forEach((value, i) => {
        const y = Math.round(plotArea.y(value));
        if (limitY !== null && Math.abs(limitY - y) < LETTERS_PX * px) {
          return;
        }
        ctx.fillStyle = style.grid;
        ctx.fillRect(left, y, right - left, px);
        ctx.fillStyle = style.muted;
        ctx.fillText(texts[i] ?? '', left - 5 * px, y);
      });
      this.paintTimes(ctx, plotArea, style);
    }
    if (limitY !== null) {
      this.paintLimit(ctx, plotArea, content, limitY);
    }
  }

  /** The line of a limit; its number stands where those of the axis do, and its name where the line leaves room. */
  private paintLimit(ctx: CanvasRenderingContext2D, area: PlotArea, content: ChartContent, y: number): void {
    const { limit, limitName, axis, style } = content;
    const px = ratio();
    const { left, right, top } = area;
    ctx.strokeStyle = style.muted;
    ctx.setLineDash([3 * px, 3 * px]);
    ctx.beginPath();
    ctx.moveTo(left, y + px / 2);
    ctx.lineTo(right, y + px / 2);
    ctx.stroke();
    ctx.setLineDash([]);
    if (!this.hasAxes()) {
      return;
    }
    ctx.fillStyle = style.text;
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'right';
    ctx.fillText(axis.ticks([limit ?? 0])[0] ?? '', left - 5 * px, y);
    if (limitName !== undefined) {
      const above = y - top >= LETTERS_PX * px;
      ctx.fillStyle = style.muted;
      ctx.textBaseline = above ? 'bottom' : 'top';
      ctx.textAlign = 'left';
      ctx.fillText(limitName, left + 4 * px, y + (above ? -2 : 3) * px);
    }
  }

  private paintTimes(ctx: CanvasRenderingContext2D, plotArea: PlotArea, style: ChartStyle): void {
    const px = ratio();
    const { left, right, bottom } = plotArea;
    const { step_ms, times_ms } = timeTicks(plotArea.from_ms, plotArea.to_ms, (right - left) / (TIME_APART_PX * px));
    ctx.textAlign = 'center';
    ctx.fillStyle = style.muted;
    for (const at_ms of times_ms) {
      const text = step_ms < MINUTE_MS ? timeOfDay(at_ms) : hourAndMinute(at_ms);
      const half = ctx.measureText(text).width / 2;
      const x = Math.round(plotArea.x(at_ms));
      if (x + half <= this.width && x - half >= 0) {
        ctx.fillText(text, x, bottom + (BOTTOM_PX / 2 + 1) * px);
        ctx.fillRect(x, bottom, px, 3 * px);
      }
    }
  }
}

/** Top and bottom of what is drawn of lines that go beyond the area. */
function clipOf({ top, bottom }: PlotArea): [top: number, bottom: number] {
  return [top - CLIP_PX * ratio(), bottom + CLIP_PX * ratio()];
}

/** The place among the samples of the moment pointed at, or of the newest. */
function cursorIndex(times_ms: Float64Array, { at_ms, window }: ChartContent): number {
  return at_ms === null ? times_ms.length - 1 : indexAt(times_ms, at_ms, window.gap_ms);
}

function paintLines(ctx: CanvasRenderingContext2D, area: PlotArea, { window, lines, stack }: ChartContent): void {
  const { times_ms } = window;
  const [begin, end] = visibleRange(times_ms, area);
  /** Fills what lies between two lines, or between a line and the ground. */
  const fill = (color: string, alpha: number, ...edges: readonly Float64Array[]): void => {
    const path = new Path2D();
    for (const values of edges) {
      addLine(path, times_ms, values, begin, end, area, area.bottom);
    }
    ctx.globalAlpha = alpha;
    ctx.fillStyle = color;
    ctx.fill(path, 'evenodd');
    ctx.globalAlpha = 1;
  };
  const layers = stacked(stack ?? [], begin, end);
  layers.forEach(({ values, color }, i) => {
    const below = layers[i - 1];
    fill(color, STACK_ALPHA, values, ...(below === undefined ? [] : [below.values]));
  });
  const isCrowded = lines.length > CROWD;
  ctx.lineJoin = isCrowded ? 'bevel' : 'round';
  ctx.lineCap = isCrowded ? 'butt' : 'round';
  const strongLast = [...lines].sort((a, b) => Number(a.strong ?? false) - Number(b.strong ?? false));
  // What has the color of another is told from it by its dashed edge.
  for (const line of [...layers.filter(({ dash }) => dash !== undefined), ...strongLast]) {
    if (lines.length === 1 && layers.length === 0) {
      fill(line.color, FILL_ALPHA, line.values);
    }
    const times = line.times_ms ?? times_ms;
    const path = new Path2D();
    addLine(path, times, line.values, ...visibleRange(times, area), area);
    ctx.globalAlpha = line.faint === true ? FAINT_ALPHA : 1;
    ctx.lineWidth = (line.strong === true ? 2.5 : isCrowded ? 1 : 1.5) * ratio();
    ctx.strokeStyle = line.color;
    ctx.setLineDash(line.dash?.map((length) => length * ratio()) ?? NO_DASH);
    ctx.stroke(path);
    ctx.globalAlpha = 1;
  }
}

/** The places of the samples to draw: one beyond each edge, so that lines come from and go to where they should. */
function visibleRange(times_ms: Float64Array, area: PlotArea): [begin: number, end: number] {
  const begin = Math.max(0, firstAfter(times_ms, area.from_ms) - 1);
  return [begin, Math.min(times_ms.length, firstAfter(times_ms, area.to_ms) + 1)];
}

/** Each line upon those before it. What is not known of one adds nothing; where nothing is known, there is a hole. */
function stacked(stack: readonly ChartLine[], begin: number, end: number): ChartLine[] {
  let below: Float64Array | null = null;
  return stack.map(({ values, ...look }) => {
    const sum = new Float64Array(end).fill(NaN);
    for (let i = begin; i < end; i += 1) {
      const own = values[i] ?? NaN;
      const under = below?.[i] ?? NaN;
      sum[i] = Number.isNaN(own) ? under : own + (Number.isNaN(under) ? 0 : under);
    }
    below = sum;
    return { ...look, values: sum };
  });
}

/** A thin line at each event, and a wedge at its foot on the time axis. */
function paintMarkers(ctx: CanvasRenderingContext2D, area: PlotArea, { markers }: ChartContent): void {
  const half = 3.5 * ratio();
  for (const { at_ms, color } of markers ?? []) {
    if (at_ms < area.from_ms || at_ms > area.to_ms) {
      continue;
    }
    const x = Math.round(area.x(at_ms));
    ctx.fillStyle = color;
    ctx.globalAlpha = 0.55;
    ctx.fillRect(x, area.top, ratio(), area.bottom - area.top);
    ctx.globalAlpha = 1;
    ctx.beginPath();
    ctx.moveTo(x - half, area.bottom);
    ctx.lineTo(x + half, area.bottom);
    ctx.lineTo(x, area.bottom - 2 * half);
    ctx.fill();
  }
}

function ratio(): number {
  return Math.max(1, globalThis.devicePixelRatio || 1);
}

function paintBands(ctx: CanvasRenderingContext2D, area: PlotArea, { bands = [], style }: ChartContent): void {
  const px = ratio();
  ctx.textAlign = 'left';
  ctx.textBaseline = 'top';
  for (const { from_ms, to_ms, color, label } of bands) {
    const x = Math.max(area.left, Math.round(area.x(from_ms)));
    const end = Math.min(area.right, Math.round(area.x(to_ms)));
    if (end < area.left || x > area.right) {
      continue;
    }
    const width = Math.max(px, end - x);
    ctx.globalAlpha = 0.12;
    ctx.fillStyle = color;
    ctx.fillRect(x, area.top, width, area.bottom - area.top);
    ctx.globalAlpha = 0.5;
    ctx.fillRect(x, area.top, px, area.bottom - area.top);
    ctx.globalAlpha = 1;
    if (ctx.measureText(label).width + 6 * px < width) {
      ctx.fillStyle = style.muted;
      ctx.fillText(label, x + 4 * px, area.top + 2 * px);
    }
  }
}

/** The time under the pointer, or the newest value: a dot on each line. */
function paintCursor(ctx: CanvasRenderingContext2D, area: PlotArea, content: ChartContent): void {
  const px = ratio();
  const { at_ms, window, lines, style } = content;
  if (at_ms !== null && at_ms >= area.from_ms && at_ms <= area.to_ms) {
    ctx.globalAlpha = 0.5;
    ctx.fillStyle = style.text;
    ctx.fillRect(Math.round(area.x(at_ms)), area.top, px, area.bottom - area.top);
    ctx.globalAlpha = 1;
  }
  for (const { values, color, times_ms = window.times_ms, faint } of lines.length > CROWD ? [] : lines) {
    const index = cursorIndex(times_ms, content);
    const time = times_ms[index] ?? NaN;
    const value = values[index] ?? NaN;
    const [top, bottom] = clipOf(area);
    const isInside = time >= area.from_ms && time <= area.to_ms && area.y(value) >= top && area.y(value) <= bottom;
    if (isInside && faint !== true) {
      ctx.fillStyle = color;
      ctx.beginPath();
      ctx.arc(area.x(time), area.y(value), 2.5 * px, 0, 2 * Math.PI);
      ctx.fill();
    }
  }
}
