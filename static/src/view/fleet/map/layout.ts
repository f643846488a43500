/** The layout of a heat map. The cells of a node are adjacent, and as large as possible. */

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
  /** The number of cells of a node in a row. `down` is the number in a column. */
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
