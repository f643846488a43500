/** The drawing of a chart's content on a canvas or on an SVG image. */

import { indexAfter, nearestIndex } from '../lib/timeline';
import { DAY_MS, isMidnight, MINUTE_MS, timeTicks, formatTimeTick, valueTicks } from './axis';
import type { ChartContent, ChartLine, ChartStyle, PlotArea } from './content';
import { addLine } from './line';

/** The target of drawing: a canvas, or an SVG image from `svg.ts`. */
export type Surface = Pick<
  CanvasRenderingContext2D,
  | 'fillStyle'
  | 'strokeStyle'
  | 'globalAlpha'
  | 'lineWidth'
  | 'lineJoin'
  | 'lineCap'
  | 'setLineDash'
  | 'font'
  | 'textAlign'
  | 'textBaseline'
  | 'measureText'
  | 'fillText'
  | 'fillRect'
  | 'beginPath'
  | 'moveTo'
  | 'lineTo'
  | 'closePath'
  | 'rect'
  | 'arc'
  | 'stroke'
  | 'clip'
  | 'save'
  | 'restore'
  | 'translate'
> & { fill: (rule?: CanvasFillRule) => void };

/** The margin for the dot at the newest value. */
export const EDGE_PX = 4;
/** A clipped line may extend this far beyond its area. The distance is half of the line's width. */
export const CLIP_PX = 1.5;
/** The height of the time labels below the area. */
export const BOTTOM_PX = 18;
/** The distance between an axis and its labels. */
const LABEL_PX = 7;
/**
 * The minimum distance between two time labels if they show seconds. `MINUTE_LABEL_DISTANCE_PX` is
 * the minimum distance if they do not.
 */
const SECOND_LABEL_DISTANCE_PX = 62;
const MINUTE_LABEL_DISTANCE_PX = 54;
const VALUE_LABEL_DISTANCE_PX = 26;
/** The height of a line of text. */
const TEXT_HEIGHT_PX = 14;
const FILL_ALPHA = 0.14;
/** Almost opaque, so that the areas have the colors of the legend. */
const STACK_ALPHA = 0.9;
/** The opacity of the band between the lowest and the highest reading. */
const BAND_ALPHA = 0.22;
const FAINT_ALPHA = 0.2;
const NO_DASH: number[] = [];
/** The maximum number of lines that are drawn at full width and with dots. */
const MAX_FULL_WIDTH_LINES = 8;
const LABEL_ROWS = 3;

/** Draws a chart on an empty surface whose font is already set. */
export function paintChart(ctx: Surface, area: PlotArea, content: ChartContent): void {
  paintBands(ctx, area, content);
  paintGrid(ctx, area, content);
  ctx.save();
  ctx.beginPath();
  const [clipTop, clipBottom] =
    content.clipped === true ? verticalClipRange(area) : [0, area.height];
  ctx.rect(area.left, clipTop, area.right - area.left + EDGE_PX * area.px, clipBottom - clipTop);
  ctx.clip();
  paintLines(ctx, area, content);
  ctx.restore();
  paintMarkers(ctx, area, content);
  paintCursor(ctx, area, content);
}

function paintGrid(ctx: Surface, area: PlotArea, content: ChartContent): void {
  const { floor, ceiling, limit, axis, style } = content;
  const { px, left, right, top, bottom } = area;
  const limitY =
    typeof limit === 'number' && limit >= floor && limit <= ceiling
      ? Math.round(area.y(limit))
      : null;
  ctx.lineWidth = px;
  if (!area.hasAxes) {
    ctx.fillStyle = style.grid;
    ctx.fillRect(left, bottom - px, right - left, px);
  } else {
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'right';
    const values = valueTicks(
      floor,
      ceiling,
      (bottom - top) / (VALUE_LABEL_DISTANCE_PX * px),
      axis.base,
    );
    const texts = axis.ticks(values);
    values.forEach((value, i) => {
      const y = Math.round(area.y(value));
      if (limitY !== null && Math.abs(limitY - y) < TEXT_HEIGHT_PX * px) {
        return;
      }
      ctx.fillStyle = style.grid;
      ctx.fillRect(left, y, right - left, px);
      ctx.fillStyle = style.muted;
      ctx.fillText(texts[i] ?? '', left - LABEL_PX * px, y);
    });
    paintTimes(ctx, area, style);
  }
  if (limitY !== null) {
    paintLimit(ctx, area, content, limitY);
  }
}

/**
 * Draws the line of a limit, its value on the axis, and its name above or below the line, where
 * there is room.
 */
function paintLimit(ctx: Surface, area: PlotArea, content: ChartContent, y: number): void {
  const { limit, limitName, axis, style } = content;
  const { px, left, right, top } = area;
  ctx.strokeStyle = style.muted;
  ctx.setLineDash([3 * px, 3 * px]);
  ctx.beginPath();
  ctx.moveTo(left, y + px / 2);
  ctx.lineTo(right, y + px / 2);
  ctx.stroke();
  ctx.setLineDash([]);
  if (!area.hasAxes) {
    return;
  }
  ctx.fillStyle = style.text;
  ctx.textBaseline = 'middle';
  ctx.textAlign = 'right';
  ctx.fillText(axis.ticks([limit ?? 0])[0] ?? '', left - LABEL_PX * px, y);
  if (limitName !== undefined) {
    const above = y - top >= TEXT_HEIGHT_PX * px;
    ctx.fillStyle = style.muted;
    ctx.textBaseline = above ? 'bottom' : 'top';
    ctx.textAlign = 'left';
    ctx.fillText(limitName, left + 4 * px, y + (above ? -2 : 3) * px);
  }
}

function paintTimes(ctx: Surface, area: PlotArea, style: ChartStyle): void {
  const { px, left, right, bottom } = area;
  const ticks = (apart_px: number): ReturnType<typeof timeTicks> =>
    timeTicks(area.from_ms, area.to_ms, (right - left) / (apart_px * px));
  const closer = ticks(MINUTE_LABEL_DISTANCE_PX);
  const { step_ms, times_ms } =
    closer.step_ms < MINUTE_MS ? ticks(SECOND_LABEL_DISTANCE_PX) : closer;
  ctx.textAlign = 'center';
  for (const at_ms of times_ms) {
    const text = formatTimeTick(at_ms, step_ms);
    // If the other labels are times of day, the date at the start of a day is emphasized.
    ctx.fillStyle = step_ms < DAY_MS && isMidnight(at_ms) ? style.text : style.muted;
    const half = ctx.measureText(text).width / 2;
    const x = Math.round(area.x(at_ms));
    // The first label may extend to the left of the plot area, but must not overlap the value
    // labels.
    if (x + half <= area.width && x - half >= left - LABEL_PX * px) {
      ctx.fillText(text, x, bottom + (BOTTOM_PX / 2 + 2) * px);
      ctx.fillRect(x, bottom, px, 3 * px);
    }
  }
}

/** Returns the top and bottom of the region in which clipped lines are drawn. */
function verticalClipRange({ top, bottom, px }: PlotArea): [top: number, bottom: number] {
  return [top - CLIP_PX * px, bottom + CLIP_PX * px];
}

/** Returns the index of the sample under the pointer, or of the newest sample. */
function cursorIndex(times_ms: Float64Array, { at_ms, window }: ChartContent): number {
  return at_ms === null ? times_ms.length - 1 : nearestIndex(times_ms, at_ms, window.gap_ms);
}

function paintLines(ctx: Surface, area: PlotArea, { window, lines, stack }: ChartContent): void {
  const { times_ms } = window;
  const [begin, end] = visibleRange(times_ms, area);
  /** Fills the area between two lines, or between a line and the bottom. */
  const fill = (color: string, alpha: number, ...edges: readonly Float64Array[]): void => {
    ctx.beginPath();
    for (const values of edges) {
      addLine(ctx, times_ms, values, begin, end, area, area.bottom);
    }
    ctx.globalAlpha = alpha;
    ctx.fillStyle = color;
    ctx.fill('evenodd');
    ctx.globalAlpha = 1;
  };
  const layers = stackLines(stack ?? [], begin, end);
  layers.forEach(({ values, color }, i) => {
    const below = layers[i - 1];
    fill(color, STACK_ALPHA, values, ...(below === undefined ? [] : [below.values]));
  });
  const isCrowded = lines.length > MAX_FULL_WIDTH_LINES;
  ctx.lineJoin = isCrowded ? 'bevel' : 'round';
  ctx.lineCap = isCrowded ? 'butt' : 'round';
  const strongLast = [...lines].sort(
    (a, b) => Number(a.strong ?? false) - Number(b.strong ?? false),
  );
  for (const { extremes, color, faint } of isCrowded ? [] : lines) {
    if (extremes != null && faint !== true) {
      fill(color, BAND_ALPHA, extremes.high, extremes.low);
    }
  }
  // If two layers have the same color, one of them has a dashed edge, so that they can be
  // distinguished.
  for (const line of [...layers.filter(({ dash }) => dash !== undefined), ...strongLast]) {
    if (lines.length === 1 && layers.length === 0 && line.unfilled !== true) {
      fill(line.color, FILL_ALPHA, line.values);
    }
    const times = line.times_ms ?? times_ms;
    ctx.beginPath();
    addLine(ctx, times, line.values, ...visibleRange(times, area), area);
    ctx.globalAlpha = line.faint === true ? FAINT_ALPHA : 1;
    ctx.lineWidth = (line.strong === true ? 2.5 : isCrowded ? 1 : 1.5) * area.px;
    ctx.strokeStyle = line.color;
    ctx.setLineDash(line.dash?.map((length) => length * area.px) ?? NO_DASH);
    ctx.stroke();
    ctx.globalAlpha = 1;
  }
}

/**
 * Returns the range of indexes to draw. It includes one sample beyond each edge, so that lines
 * extend to the edges.
 */
function visibleRange(times_ms: Float64Array, area: PlotArea): [begin: number, end: number] {
  const begin = Math.max(0, indexAfter(times_ms, area.from_ms) - 1);
  return [begin, Math.min(times_ms.length, indexAfter(times_ms, area.to_ms) + 1)];
}

/**
 * Returns cumulative sums: the values of each line are added to the sum of the lines before it. A
 * missing value counts as zero. Where all values are missing, there is a gap.
 */
function stackLines(stack: readonly ChartLine[], begin: number, end: number): ChartLine[] {
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

/**
 * Draws a triangle on the time axis at each event, and a thin vertical line if the event is not
 * small.
 */
function paintMarkers(ctx: Surface, area: PlotArea, { markers }: ChartContent): void {
  const half = 3.5 * area.px;
  for (const { at_ms, color, small } of markers ?? []) {
    if (at_ms < area.from_ms || at_ms > area.to_ms) {
      continue;
    }
    const x = Math.round(area.x(at_ms));
    if (small !== true) {
      fillColumn(ctx, area, x, area.px, color, 0.55);
    }
    ctx.fillStyle = color;
    ctx.beginPath();
    ctx.moveTo(x - half, area.bottom);
    ctx.lineTo(x + half, area.bottom);
    ctx.lineTo(x, area.bottom - 2 * half);
    ctx.fill();
  }
}

function paintBands(ctx: Surface, area: PlotArea, { bands = [], style }: ChartContent): void {
  const { px } = area;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'top';
  /**
   * The right end of the last label in each row. A label is drawn in the first row in which it does
   * not overlap another label. The label is omitted if there is no such row, or if it does not
   * fit into its band.
   */
  const ends = Array<number>(LABEL_ROWS).fill(-Infinity);
  for (const { from_ms, to_ms, color, label } of bands) {
    const [x, width] = horizontalExtent(area, from_ms, to_ms);
    if (width === 0) {
      continue;
    }
    fillColumn(ctx, area, x, width, color, 0.12);
    fillColumn(ctx, area, x, px, color, 0.5);
    const text = ctx.measureText(label).width;
    const row = ends.findIndex((end) => end < x);
    if (text + 6 * px < width && row >= 0) {
      ends[row] = x + text + 8 * px;
      ctx.fillStyle = style.muted;
      ctx.fillText(label, x + 4 * px, area.top + (2 + row * TEXT_HEIGHT_PX) * px);
    }
  }
}

/** Fills the whole height of the area from `x` to `x + width`. */
function fillColumn(
  ctx: Surface,
  { top, bottom }: PlotArea,
  x: number,
  width: number,
  color: string,
  alpha: number,
): void {
  ctx.globalAlpha = alpha;
  ctx.fillStyle = color;
  ctx.fillRect(x, top, width, bottom - top);
  ctx.globalAlpha = 1;
}

/**
 * Returns the position of a time range. A short range is one pixel wide, and an invisible range has
 * no width.
 */
function horizontalExtent(
  area: PlotArea,
  from_ms: number,
  to_ms: number,
): [x: number, width: number] {
  const x = Math.max(area.left, Math.round(area.x(from_ms)));
  const end = Math.min(area.right, Math.round(area.x(to_ms)));
  return [x, end < area.left || x > area.right ? 0 : Math.max(area.px, end - x)];
}

/**
 * Draws a vertical line at the time under the pointer, and a dot on each line at that time or at
 * the newest value.
 */
function paintCursor(ctx: Surface, area: PlotArea, content: ChartContent): void {
  const { px } = area;
  const { at_ms, window, lines, style } = content;
  if (at_ms !== null && at_ms >= area.from_ms && at_ms <= area.to_ms) {
    fillColumn(ctx, area, Math.round(area.x(at_ms)), px, style.text, 0.5);
  }
  for (const { values, color, times_ms = window.times_ms, faint } of lines.length >
  MAX_FULL_WIDTH_LINES
    ? []
    : lines) {
    const index = cursorIndex(times_ms, content);
    const time = times_ms[index] ?? NaN;
    const value = values[index] ?? NaN;
    const [top, bottom] = verticalClipRange(area);
    const isInside =
      time >= area.from_ms && time <= area.to_ms && area.y(value) >= top && area.y(value) <= bottom;
    if (isInside && faint !== true) {
      ctx.fillStyle = color;
      ctx.beginPath();
      ctx.arc(area.x(time), area.y(value), 2.5 * px, 0, 2 * Math.PI);
      ctx.fill();
    }
  }
}
