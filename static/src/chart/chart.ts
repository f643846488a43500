/**
 * Lines over time on a canvas, on a wall clock; drawn anew only where somebody would see the
 * difference.
 */

import type { ChartContent, PlotArea } from './content';
import { frameSignature, isVisibleChange, type FrameSignature } from './frame-diff';
import { BOTTOM_PX, CLIP_PX, EDGE_PX, paintChart } from './paint';
import type { Surface } from './surface';

/** From this size on there is room for axes. */
const AXES_WIDTH_PX = 200;
const AXES_HEIGHT_PX = 60;
const LEFT_PX = 60;
const TOP_PX = 6;

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

  /** The milliseconds in a pixel of the page; `null` where the chart is not drawn. */
  get pixel_ms(): number | null {
    const area = this.plotArea();
    return area === null
      ? null
      : ((area.to_ms - area.from_ms) / (area.right - area.left)) * area.px;
  }

  /**
   * The value under a point of the screen, and how much a pixel is; `null` where the chart is not
   * drawn.
   */
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
    return area === null || at_ms < area.from_ms || at_ms > area.to_ms
      ? null
      : area.x(at_ms) / ratio();
  }

  /** Whether a point of the screen is on the axis of values. */
  isOnAxis(clientX: number): boolean {
    const area = this.plotArea();
    const x = (clientX - this.host.getBoundingClientRect().left) * ratio();
    return area !== null && this.hasAxes() && x < area.left;
  }

  /** Draws what is shown upon something else, in pixels of the device. */
  drawOn(surface: Surface): void {
    const area = this.plotArea();
    if (area !== null && this.content !== null) {
      paintChart(surface, area, { ...this.content, at_ms: null });
    }
  }

  /** The pixels of the device in one of the page. */
  get px(): number {
    return ratio();
  }

  get height_px(): number {
    return this.height / ratio();
  }

  get width_px(): number {
    return this.width / ratio();
  }

  dispose(): void {
    this.sizes?.disconnect();
    this.context?.canvas.remove();
  }

  private open(): void {
    // Without layout, such as in a test, nothing can be drawn.
    if (typeof ResizeObserver === 'undefined') {
      return;
    }
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
      px,
      width,
      height,
      hasAxes: withAxes,
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
    paintChart(ctx, plotArea, content);
  }

  /** Letters are chosen once, since choosing them has the browser find out all styles. */
  private setFont(ctx: CanvasRenderingContext2D, family: string): void {
    const font = `${10 * ratio()}px ${family}`;
    if (font !== this.font) {
      this.font = font;
      ctx.font = font;
    }
  }
}

function ratio(): number {
  return Math.max(1, globalThis.devicePixelRatio || 1);
}
