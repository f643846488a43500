/**
 * A chart of lines over time on a canvas. It is redrawn only if the difference would be visible.
 */

import type { ChartContent, PlotArea } from './content';
import { BOTTOM_PX, CLIP_PX, EDGE_PX, paintChart, type Surface } from './paint';

/**
 * The minimum width and the minimum height of a chart with axes. Smaller charts have no room for
 * axes.
 */
const AXES_WIDTH_PX = 200;
const AXES_HEIGHT_PX = 60;
const LEFT_PX = 60;
const TOP_PX = 6;

export class Chart {
  private context: CanvasRenderingContext2D | null = null;
  private sizes: ResizeObserver | null = null;
  private content: ChartContent | null = null;
  /**
   * A description of the last drawn frame. It is `null` if the chart must be drawn again even if
   * nothing has changed.
   */
  private drawn: FrameSignature | null = null;
  private drawn_ms = 0;
  private font = '';
  private width = 0;
  private height = 0;

  /** The canvas is created when the chart is first drawn. */
  constructor(private readonly host: HTMLElement) {}

  /** Measures the size immediately, for a chart that becomes visible before its next frame. */
  measureSize(): void {
    this.resize(this.host.clientWidth, this.host.clientHeight);
  }

  draw(content: ChartContent): void {
    if (this.sizes === null) {
      this.createCanvas();
    }
    if (content.style !== this.content?.style) {
      this.drawn = null;
    }
    this.content = content;
    this.paint();
  }

  /**
   * Returns the time at a horizontal position on the screen, or `null` if the chart is not drawn.
   */
  timeAt(clientX: number): number | null {
    const plotArea = this.plotArea();
    if (plotArea === null) {
      return null;
    }
    const x = this.toCanvasX(clientX);
    const share = Math.min(1, Math.max(0, (x - plotArea.left) / (plotArea.right - plotArea.left)));
    return Math.round(plotArea.from_ms + share * (plotArea.to_ms - plotArea.from_ms));
  }

  /** The milliseconds per CSS pixel; `null` if the chart is not drawn. */
  get pixel_ms(): number | null {
    const area = this.plotArea();
    return area === null
      ? null
      : ((area.to_ms - area.from_ms) / (area.right - area.left)) * area.px;
  }

  /**
   * Returns the value at a vertical position on the screen, and the difference between the values
   * of two adjacent pixels. Returns `null` if the chart is not drawn.
   */
  valueAt(clientY: number): { value: number; pixel: number } | null {
    const area = this.plotArea();
    if (area === null || this.content === null) {
      return null;
    }
    const { floor, ceiling } = this.content;
    const perPixel = (ceiling - floor) / (area.bottom - area.top);
    const y = (clientY - this.host.getBoundingClientRect().top) * currentPixelRatio();
    return { value: floor + (area.bottom - y) * perPixel, pixel: perPixel * currentPixelRatio() };
  }

  /**
   * Returns the position of a time in CSS pixels from the left edge, or `null` if the time is not
   * visible.
   */
  xOf(at_ms: number): number | null {
    const area = this.plotArea();
    return area === null || at_ms < area.from_ms || at_ms > area.to_ms
      ? null
      : area.x(at_ms) / currentPixelRatio();
  }

  /** Returns whether a horizontal position on the screen is on the value axis. */
  isOnAxis(clientX: number): boolean {
    const area = this.plotArea();
    return area?.hasAxes === true && this.toCanvasX(clientX) < area.left;
  }

  /** Draws the content of the chart on another surface, in device pixels. */
  drawOn(surface: Surface): void {
    const area = this.plotArea();
    if (area !== null && this.content !== null) {
      paintChart(surface, area, { ...this.content, at_ms: null });
    }
  }

  /** The number of device pixels per CSS pixel. */
  get pixelRatio(): number {
    return currentPixelRatio();
  }

  get height_px(): number {
    return this.height / currentPixelRatio();
  }

  get width_px(): number {
    return this.width / currentPixelRatio();
  }

  dispose(): void {
    this.sizes?.disconnect();
    this.context?.canvas.remove();
  }

  private createCanvas(): void {
    // Without layout, for example in a test, nothing can be drawn.
    if (typeof ResizeObserver === 'undefined') {
      return;
    }
    const canvas = document.createElement('canvas');
    this.context = canvas.getContext('2d');
    this.host.append(canvas);
    // The observer first reports the size in the next frame. The page is laid out then anyway, so
    // measuring costs no additional layout.
    this.sizes = new ResizeObserver((entries) => {
      for (const { contentRect } of entries) {
        this.resize(contentRect.width, contentRect.height);
      }
      this.paint();
    });
    this.sizes.observe(this.host);
  }

  private resize(width_px: number, height_px: number): void {
    this.width = Math.round(width_px * currentPixelRatio());
    this.height = Math.round(height_px * currentPixelRatio());
  }

  /** Returns the horizontal position on the canvas of a position on the screen. */
  private toCanvasX(clientX: number): number {
    return (clientX - this.host.getBoundingClientRect().left) * currentPixelRatio();
  }

  private plotArea(): PlotArea | null {
    const { content, width, height } = this;
    if (content === null || width === 0 || height === 0) {
      return null;
    }
    const px = currentPixelRatio();
    const hasAxes = width >= AXES_WIDTH_PX * px && height >= AXES_HEIGHT_PX * px;
    const left = Math.round((hasAxes ? LEFT_PX : EDGE_PX) * px);
    const right = width - Math.round(EDGE_PX * px);
    const top = Math.round((hasAxes ? TOP_PX : EDGE_PX) * px);
    const bottom = height - Math.round((hasAxes ? BOTTOM_PX : 1) * px);
    const { window, floor, ceiling, clipped = false } = content;
    const beyond = clipped ? 2 * CLIP_PX * px : 0;
    const scale = (bottom - top) / (ceiling - floor);
    const pixel_ms = (window.to_ms - window.from_ms) / (right - left);
    const to_ms = Math.ceil(window.to_ms / pixel_ms) * pixel_ms;
    const from_ms = to_ms - (right - left) * pixel_ms;
    return {
      px,
      width,
      height,
      hasAxes,
      left,
      right,
      top,
      bottom,
      from_ms,
      to_ms,
      x: (at_ms) => left + (at_ms - from_ms) / pixel_ms,
      y: (value) =>
        Math.min(bottom + beyond, Math.max(top - beyond, bottom - (value - floor) * scale)),
    };
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
    paintChart(ctx, plotArea, content);
  }

  /**
   * Sets the font only if it has changed, because each change makes the browser recalculate styles.
   */
  private setFont(ctx: CanvasRenderingContext2D, family: string): void {
    const font = `${10 * currentPixelRatio()}px ${family}`;
    if (font !== this.font) {
      this.font = font;
      ctx.font = font;
    }
  }
}

function currentPixelRatio(): number {
  return Math.max(1, globalThis.devicePixelRatio || 1);
}

/** A chart is drawn again when its lines have moved by at least this distance, in device pixels. */
const STEP_PX = 2;
/**
 * If only the newest values have changed, the chart is drawn again after at most this delay. The
 * delay is acceptable, because the newest value is also shown as text next to the chart.
 */
const MAX_DELAY_MS = 1000;

interface FrameSignature {
  /**
   * A string that describes the part of the visible content for which there is no other field. It
   * changes whenever this part changes.
   */
  shape: string;
  to_ms: number;
  pixel_ms: number;
  ends: string;
}

export function frameSignature(content: ChartContent, area: PlotArea): FrameSignature {
  const {
    window,
    lines,
    stack = [],
    bands = [],
    markers = [],
    at_ms,
    floor,
    ceiling,
    limit,
  } = content;
  const all = [...lines, ...stack];
  const pixel_ms = (area.to_ms - area.from_ms) / (area.right - area.left);
  // A band that has not ended yet reaches to the right edge of the chart. Its end moves with the
  // edge, and this movement does not count as a change.
  const upToNow_ms = area.to_ms - STEP_PX * pixel_ms;
  const bandEdges = bands.map(({ from_ms, to_ms, color }) => [
    from_ms,
    to_ms > upToNow_ms ? '' : to_ms,
    color,
  ]);
  const scale = (area.to_ms - area.from_ms).toFixed();
  const frame = [
    window.revision,
    scale,
    area.right,
    area.bottom,
    floor,
    ceiling,
    limit ?? '',
    at_ms ?? '',
  ];
  return {
    shape: [
      frame,
      all.map(({ id, color, faint, strong }) => [id, color, faint === true, strong === true]),
      bandEdges,
      markers.length,
      markers.at(-1)?.at_ms ?? '',
    ].join(),
    to_ms: area.to_ms,
    pixel_ms,
    ends: all.map(({ values }) => Math.round(area.y(values.at(-1) ?? NaN))).join(),
  };
}

/**
 * Returns whether a new frame would visibly differ from the last frame, which was drawn `since_ms`
 * ago.
 */
export function isVisibleChange(
  before: FrameSignature,
  after: FrameSignature,
  since_ms: number,
): boolean {
  return (
    before.shape !== after.shape ||
    Math.abs(after.to_ms - before.to_ms) >= STEP_PX * after.pixel_ms ||
    (since_ms >= MAX_DELAY_MS && before.ends !== after.ends)
  );
}
