/**
 * The layout and the drawing of a heat map. The cells of a node are adjacent, and as large as
 * possible. All cells of the same look are drawn together, because changing the color is more
 * expensive than drawing a cell. A metric has one hue that gets darker or lighter with the value;
 * each state has its own hue.
 */

import { groupBy } from '../../../lib/collections';
import type { Level } from '../../../model/describe';
import { CRITICAL_SEVERITY, type Columns } from '../../../model/fleet/columns';
import { levelOf } from '../../../model/fleet/describe';
import { isNumeric, readingShare, type FleetMetric } from '../../../model/fleet/metric';
import type { GpuState } from '../../../wire';
import { colorOf, type Palette } from '../../palette';

/** A node of the map: its index among all nodes, and its rows. */
export interface MapNode {
  node: number;
  rows: ArrayLike<number>;
}

export interface Layout {
  nodes: readonly MapNode[];
  /** The side length of a cell. `gap` is the gap between two cells of a node. */
  cell: number;
  gap: number;
  /**
   * The number of cells of a node that are side by side. `down` is the number of cells that are one
   * below the other.
   */
  across: number;
  down: number;
  /** The width of a node, including the space around the node. */
  tileWidth: number;
  tileHeight: number;
  /** The height of the node's name; 0 if there is no room for it. */
  label: number;
  columns: number;
  width: number;
  height: number;
}

/** A cell: the index of its node among the displayed ones, and its index within the node. */
export interface CellPosition {
  tile: number;
  slot: number;
}

export type Direction = 'left' | 'right' | 'up' | 'down';

const MAX_CELL_PX = 26;
const MIN_CELL_PX = 4;
/** The minimum size of cells at which node names are shown. */
const MIN_LABELED_PX = 17;
const LABEL_PX = 15;
/** The minimum width reserved for the name of a node, so that short names are not cut. */
const LABEL_WIDTH_PX = 92;

/**
 * Returns the layout with the largest cells that fit into `height`, or with the smallest cells if
 * none fit.
 */
export function layoutOf(nodes: readonly MapNode[], width: number, height: number): Layout {
  const most = nodes.reduce((cells, { rows }) => Math.max(cells, rows.length), 1);
  let layout = layoutWithCell(nodes, most, width, MAX_CELL_PX);
  for (let cell = MAX_CELL_PX - 1; layout.height > height && cell >= MIN_CELL_PX; cell -= 1) {
    layout = layoutWithCell(nodes, most, width, cell);
  }
  return layout;
}

/** Returns the corner of a cell. */
export function cornerOf(layout: Layout, { tile, slot }: CellPosition): [x: number, y: number] {
  const { across, cell, gap, columns, tileWidth, tileHeight, label } = layout;
  const x = (tile % columns) * tileWidth + (slot % across) * (cell + gap);
  const y =
    Math.floor(tile / columns) * tileHeight + label + Math.floor(slot / across) * (cell + gap);
  return [x, y];
}

/**
 * Returns the cell at a position, or `null` for a position between nodes. The gap after a cell
 * counts as part of the cell.
 */
export function cellAt(layout: Layout, x: number, y: number): CellPosition | null {
  const { across, down, cell, gap, columns, tileWidth, tileHeight, label, nodes } = layout;
  const column = Math.floor(x / tileWidth);
  const tile = Math.floor(y / tileHeight) * columns + column;
  const slotX = Math.floor((x - column * tileWidth) / (cell + gap));
  const slotY = Math.floor(((y % tileHeight) - label) / (cell + gap));
  const slot = slotY * across + slotX;
  const isInside =
    x >= 0 && y >= 0 && column < columns && slotX < across && slotY >= 0 && slotY < down;
  return isInside && slot < (nodes[tile]?.rows.length ?? 0) ? { tile, slot } : null;
}

/** Returns the nearest cell in a direction, or `from` if there is no cell in this direction. */
export function findNeighbor(
  layout: Layout,
  from: CellPosition,
  direction: Direction,
): CellPosition {
  const { across, down, columns, nodes } = layout;
  const lines = Math.ceil(nodes.length / columns) * down;
  let x = (from.tile % columns) * across + (from.slot % across);
  let y = Math.floor(from.tile / columns) * down + Math.floor(from.slot / across);
  for (;;) {
    x += direction === 'left' ? -1 : direction === 'right' ? 1 : 0;
    y += direction === 'up' ? -1 : direction === 'down' ? 1 : 0;
    if (x < 0 || y < 0 || x >= columns * across || y >= lines) {
      return from;
    }
    const tile = Math.floor(y / down) * columns + Math.floor(x / across);
    const slot = (y % down) * across + (x % across);
    // A node that has fewer GPUs than others has positions without a cell, which are skipped.
    if (slot < (nodes[tile]?.rows.length ?? 0)) {
      return { tile, slot };
    }
  }
}

function layoutWithCell(
  nodes: readonly MapNode[],
  most: number,
  width: number,
  cell: number,
): Layout {
  const gap = cell >= 12 ? 2 : 1;
  const across = most <= 4 ? most : most <= 8 ? 4 : 8;
  const down = Math.ceil(most / across);
  const label = cell >= MIN_LABELED_PX ? LABEL_PX : 0;
  // If each node has a single cell, nodes are only separated by the normal gap between cells.
  const apart = most === 1 && label === 0 ? gap : Math.max(3, Math.round(cell * 0.5));
  const tileWidth = Math.max(across * (cell + gap) - gap, label === 0 ? 0 : LABEL_WIDTH_PX) + apart;
  const tileHeight = down * (cell + gap) - gap + apart + label;
  const columns = Math.max(1, Math.floor((width + apart) / tileWidth));
  const height = Math.max(0, Math.ceil(nodes.length / columns) * tileHeight - apart);
  return { nodes, cell, gap, across, down, tileWidth, tileHeight, label, columns, width, height };
}

/** The minimum size of cells that get a frame. On smaller cells, a frame would hide the color. */
const FRAMED_PX = 7;
/** The opacity of GPUs that do not match the filter. */
const OTHERS_OPACITY = 0.6;
/** The number of distinguishable steps of the color scale. */
const STEPS = 20;

/** The look of a cell: a step of the color scale, or the state or condition of a GPU. */
type Look = number | GpuState | Exclude<Level, 'none'> | 'calm' | 'missing';

/**
 * Returns the colors of all steps. They start near the color of the background, change to the
 * metric's color, and end with a lighter or darker one.
 */
function makeColorRamp(palette: Palette, metric: FleetMetric, isDark: boolean): string[] {
  const color = isNumeric(metric) ? colorOf(palette, metric) : palette.muted;
  const [low, end, high] = isDark ? [16, '#ffffff', 42] : [14, '#0a0e1e', 45];
  return Array.from({ length: STEPS }, (_, step) => {
    const share = step / (STEPS - 1) / 0.66;
    return share < 1
      ? mixColors(color, low + (100 - low) * share, palette.card)
      : mixColors(end, ((share - 1) * 0.66 * high) / 0.34, color);
  });
}

/** Mixes `share_percent` percent of a color with another color. */
function mixColors(color: string, share_percent: number, other: string): string {
  // oxlint-disable-next-line texts/translated -- This is CSS.
  return `color-mix(in srgb, ${color} ${share_percent}%, ${other})`;
}

/** Reads the colors of states from the style sheet. */
function readStateColors(element: Element): Record<'free' | 'idle' | 'busy', string> {
  const style = getComputedStyle(element);
  const color = (name: string): string => style.getPropertyValue(`--_${name}`).trim() || '#888';
  return { free: color('free'), idle: color('idle'), busy: color('busy') };
}

/** Returns the look of a row. */
function cellLook(columns: Columns, metric: FleetMetric, row: number): Look {
  const state = columns.state[row];
  if (state === 'lost' || (state === 'unknown' && columns.fleet.gpus.health[row] !== 'ok')) {
    return state;
  }
  if (metric === 'conditions') {
    const level = levelOf(columns.severity[row] ?? 0);
    return level === 'none' ? 'calm' : level;
  }
  if (!isNumeric(metric)) {
    return state === undefined || state === 'unknown' ? 'missing' : state;
  }
  const share = readingShare(columns, metric, row);
  return Number.isNaN(share) ? 'missing' : Math.round(share * (STEPS - 1));
}

interface MapPicture {
  layout: Layout;
  columns: Columns;
  metric: FleetMetric;
  /** An array with 1 for each row that matches the filter; `null` if there is no filter. */
  shown: Uint8Array | null;
  palette: Palette;
  px: number;
}

type Context = CanvasRenderingContext2D;

type Cells = readonly { x: number; y: number; row: number }[];

export function paintMap(ctx: Context, picture: MapPicture): void {
  const { layout, columns, metric, shown, palette, px } = picture;
  ctx.clearRect(0, 0, ctx.canvas.width, ctx.canvas.height);
  const cells = layout.nodes.flatMap(({ rows }, tile) =>
    Array.from(rows, (row, slot) => {
      const [x, y] = cornerOf(layout, { tile, slot });
      return { x: Math.round(x * px), y: Math.round(y * px), row };
    }),
  );
  const matching = shown === null ? cells : cells.filter(({ row }) => shown[row] === 1);
  const others = shown === null ? [] : cells.filter(({ row }) => shown[row] !== 1);
  const size = Math.max(1, Math.round(layout.cell * px));
  ctx.globalAlpha = OTHERS_OPACITY;
  paintFrames(ctx, picture, others, size, palette.grid);
  ctx.globalAlpha = 1;
  const byLook = groupBy(matching, ({ row }) => cellLook(columns, metric, row));
  paintLooks(ctx, picture, byLook, size);
  if (shown !== null && layout.cell >= FRAMED_PX) {
    paintFrames(ctx, picture, matching, size, palette.muted);
  }
  paintCriticalCorners(ctx, picture, byLook, size);
  if (layout.label > 0) {
    paintNames(ctx, picture);
  }
}

/**
 * Draws cells by their look. The worse the state or condition is, the larger is the filled part of
 * a cell.
 */
function paintLooks(
  ctx: Context,
  picture: MapPicture,
  byLook: ReadonlyMap<Look, Cells>,
  size: number,
): void {
  const { palette, metric, px } = picture;
  const isDark = ctx.canvas.closest('[data-gpumon-scheme=dark]') !== null;
  const ramp = makeColorRamp(palette, metric, isDark);
  const states = readStateColors(ctx.canvas);
  const { notice, warning, critical } = palette.levels;
  const fills: Partial<Record<Look, [color: string, share?: number]>> = {
    lost: [critical],
    notice: [notice, 0.34],
    warning: [warning, 0.67],
    critical: [critical],
    free: [states.free],
    idle: [states.idle, 0.6],
    busy: [states.busy],
  };
  for (const [look, cells] of byLook) {
    const fill = (color: string | CanvasPattern, share = 1): void => {
      const height = Math.max(1, Math.round(size * share));
      ctx.fillStyle = color;
      for (const { x, y } of cells) {
        ctx.fillRect(x, y + size - height, size, height);
      }
    };
    if (look === 'unknown' || look === 'missing') {
      fill(palette.grid);
      const color = look === 'unknown' ? critical : palette.muted;
      fill(createHatching(ctx, color, px) ?? palette.grid);
    } else {
      fill(ramp[typeof look === 'number' ? look : 0] ?? palette.grid);
      const over = fills[look];
      if (over !== undefined) {
        fill(...over);
      }
    }
    if (look === 'lost') {
      paintCrosses(ctx, picture, cells, size);
    }
  }
}

/**
 * Draws frames. They surround the cells of GPUs that match the filter, and replace the cells of all
 * other GPUs.
 */
function paintFrames(
  ctx: Context,
  { px }: MapPicture,
  cells: Cells,
  size: number,
  color: string,
): void {
  const line = Math.max(1, Math.round(px));
  ctx.strokeStyle = color;
  ctx.lineWidth = line;
  for (const { x, y } of cells) {
    ctx.strokeRect(x + line / 2, y + line / 2, size - line, size - line);
  }
}

/** Crosses out GPUs that do not respond. */
function paintCrosses(ctx: Context, { palette, px }: MapPicture, cells: Cells, size: number): void {
  const edge = Math.max(1, size * 0.24);
  ctx.strokeStyle = palette.card;
  ctx.lineWidth = Math.max(1, size * 0.12, px);
  ctx.beginPath();
  for (const { x, y } of cells) {
    ctx.moveTo(x + edge, y + edge);
    ctx.lineTo(x + size - edge, y + size - edge);
    ctx.moveTo(x + size - edge, y + edge);
    ctx.lineTo(x + edge, y + size - edge);
  }
  ctx.stroke();
}

/**
 * Marks a corner of the cells of GPUs with a critical condition, whatever the color of the cell is.
 */
function paintCriticalCorners(
  ctx: Context,
  picture: MapPicture,
  byLook: ReadonlyMap<Look, Cells>,
  size: number,
): void {
  const { palette, columns } = picture;
  const length = Math.max(3, Math.round(size * 0.6));
  const marked = [...byLook].flatMap(([look, cells]) =>
    typeof look === 'number' || look === 'missing'
      ? cells.filter(({ row }) => (columns.severity[row] ?? 0) >= CRITICAL_SEVERITY)
      : [],
  );
  for (const [color, more] of [
    [palette.card, Math.max(1, Math.round(size * 0.14))],
    [palette.levels.critical, 0],
  ] as const) {
    ctx.fillStyle = color;
    ctx.beginPath();
    for (const { x, y } of marked) {
      ctx.moveTo(x + size - length - more, y);
      ctx.lineTo(x + size, y);
      ctx.lineTo(x + size, y + length + more);
      ctx.closePath();
    }
    ctx.fill();
  }
}

function paintNames(
  ctx: Context,
  { layout, palette, px, columns: { nodeNames } }: MapPicture,
): void {
  const { columns, tileWidth, tileHeight, cell, label } = layout;
  const room = (tileWidth - cell / 2) * px;
  ctx.font = `${10.5 * px}px ${palette.font}`;
  ctx.fillStyle = palette.muted;
  ctx.textBaseline = 'alphabetic';
  ctx.textAlign = 'left';
  layout.nodes.forEach(({ node }, tile) => {
    const x = (tile % columns) * tileWidth * px;
    const y = (Math.floor(tile / columns) * tileHeight + label - 4) * px;
    ctx.fillText(shortenToWidth(ctx, nodeNames[node] ?? '', room), Math.round(x), Math.round(y));
  });
}

/** Shortens a name at its start, because the names of nodes differ at their ends. */
function shortenToWidth(ctx: Context, name: string, room: number): string {
  if (ctx.measureText(name).width <= room) {
    return name;
  }
  for (let cut = 1; cut < name.length; cut += 1) {
    const rest = `…${name.slice(cut)}`;
    if (ctx.measureText(rest).width <= room) {
      return rest;
    }
  }
  return '';
}

function createHatching(ctx: Context, color: string, px: number): CanvasPattern | null {
  const size = Math.round(4 * px);
  const tile = document.createElement('canvas');
  tile.width = tile.height = size;
  const on = tile.getContext('2d');
  if (on === null) {
    return null;
  }
  on.strokeStyle = color;
  on.lineWidth = px;
  on.beginPath();
  for (const shift of [-size, 0, size]) {
    on.moveTo(shift - 1, size + 1);
    on.lineTo(shift + size + 1, -1);
  }
  on.stroke();
  return ctx.createPattern(tile, 'repeat');
}
