/** Draws a heat map look by look, because a change of color costs more than a cell. */

import type { Palette } from '../../palette';
import { cornerOf, type Layout } from './layout';
import { LOOK, STEPS, type StateColors } from './scale';

export interface MapPicture {
  layout: Layout;
  /** How each row is drawn. */
  looks: Uint8Array;
  /** 1 for each row that matches the filter; `null` without a filter. */
  shown: Uint8Array | null;
  /** Rows with a critical condition. */
  severe: (row: number) => boolean;
  /** Names of nodes, where there is room. */
  nameOf: (node: number) => string;
  ramp: readonly string[];
  states: StateColors;
  palette: Palette;
  px: number;
}

type Context = CanvasRenderingContext2D;

export function paintMap(ctx: Context, picture: MapPicture): void {
  const { layout, looks, shown, px } = picture;
  ctx.clearRect(0, 0, ctx.canvas.width, ctx.canvas.height);
  const byLook = Array.from(
    { length: LOOK.busy + 1 },
    (): { x: number; y: number; row: number }[] => [],
  );
  const others: { x: number; y: number }[] = [];
  layout.nodes.forEach(({ rows }, tile) => {
    for (let slot = 0; slot < rows.length; slot += 1) {
      const row = rows[slot] ?? 0;
      const [x, y] = cornerOf(layout, { tile, slot });
      const at = { x: Math.round(x * px), y: Math.round(y * px), row };
      (shown === null || shown[row] === 1 ? byLook[looks[row] ?? LOOK.missing] : others)?.push(at);
    }
  });
  const size = Math.max(1, Math.round(layout.cell * px));
  paintEmpty(ctx, picture, others, size);
  byLook.forEach((cells, look) => paintLook(ctx, picture, look, cells, size));
  paintMarks(ctx, picture, byLook, size);
  if (layout.label > 0) {
    paintNames(ctx, picture);
  }
}

type Cells = readonly { x: number; y: number; row: number }[];

function paintLook(
  ctx: Context,
  picture: MapPicture,
  look: number,
  cells: Cells,
  size: number,
): void {
  if (cells.length === 0) {
    return;
  }
  const { palette, ramp, states } = picture;
  const fill = (color: string | CanvasPattern, height = size): void => {
    ctx.fillStyle = color;
    for (const { x, y } of cells) {
      ctx.fillRect(x, y + size - height, size, height);
    }
  };
  const calm = ramp[0] ?? palette.grid;
  if (look < STEPS) {
    fill(ramp[look] ?? calm);
  } else if (look === LOOK.lost) {
    fill(palette.levels.critical);
    paintCrosses(ctx, picture, cells, size);
  } else if (look === LOOK.unknown || look === LOOK.missing) {
    fill(palette.grid);
    fill(
      hatching(ctx, look === LOOK.unknown ? palette.levels.critical : palette.muted, picture.px) ??
        palette.grid,
    );
  } else {
    fill(calm);
    // The worse, the fuller, so that cells differ by more than color.
    if (look === LOOK.notice) {
      fill(palette.levels.notice, Math.max(1, Math.round(size * 0.34)));
    } else if (look === LOOK.warning) {
      fill(palette.levels.warning, Math.max(2, Math.round(size * 0.67)));
    } else if (look === LOOK.critical) {
      fill(palette.levels.critical);
    } else if (look === LOOK.idle) {
      fill(states.idle, Math.max(2, Math.round(size * 0.6)));
    } else if (look === LOOK.free || look === LOOK.busy) {
      fill(look === LOOK.free ? states.free : states.busy);
    }
  }
}

/** GPUs that do not match are empty frames. */
function paintEmpty(
  ctx: Context,
  { palette, px }: MapPicture,
  cells: readonly { x: number; y: number }[],
  size: number,
): void {
  const line = Math.max(1, Math.round(px));
  ctx.strokeStyle = palette.grid;
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

/** Cuts the corner of GPUs with a critical condition, whatever the color of the cell. */
function paintMarks(
  ctx: Context,
  picture: MapPicture,
  byLook: readonly Cells[],
  size: number,
): void {
  const { palette, severe } = picture;
  const length = Math.max(3, Math.round(size * 0.6));
  const marked = byLook.flatMap((cells, look) =>
    look === LOOK.lost || look === LOOK.unknown || look > LOOK.lost
      ? []
      : cells.filter(({ row }) => severe(row)),
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

function paintNames(ctx: Context, { layout, palette, px, nameOf }: MapPicture): void {
  const { columns, tileWidth, tileHeight, cell, label } = layout;
  const room = (tileWidth - cell / 2) * px;
  ctx.font = `${10.5 * px}px ${palette.font}`;
  ctx.fillStyle = palette.muted;
  ctx.textBaseline = 'alphabetic';
  ctx.textAlign = 'left';
  layout.nodes.forEach(({ node }, tile) => {
    const x = (tile % columns) * tileWidth * px;
    const y = (Math.floor(tile / columns) * tileHeight + label - 4) * px;
    ctx.fillText(fitting(ctx, nameOf(node), room), Math.round(x), Math.round(y));
  });
}

/** Cuts the start of a name, because nodes differ at its end. */
function fitting(ctx: Context, name: string, room: number): string {
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

function hatching(ctx: Context, color: string, px: number): CanvasPattern | null {
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
