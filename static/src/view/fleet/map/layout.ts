/** The layout of a heat map: the cells of a node side by side, as large as the room allows. */

/** A node of the map: its place among all nodes, and its rows. */
export interface MapNode {
  node: number;
  rows: ArrayLike<number>;
}

export interface Layout {
  nodes: readonly MapNode[];
  /** The length of a cell's sides, and the gap between two cells of a node. */
  cell: number;
  gap: number;
  /** Cells of a node side by side, and one above the other. */
  across: number;
  down: number;
  /** A node with the room around it. */
  tileWidth: number;
  tileHeight: number;
  /** Room for its name; 0 where there is none. */
  label: number;
  columns: number;
  width: number;
  height: number;
}

/** One cell: the place of its node among those shown, and its own place in it. */
export interface CellPlace {
  tile: number;
  slot: number;
}

export type Direction = 'left' | 'right' | 'up' | 'down';

const CELL_MOST = 26;
const CELL_LEAST = 4;
/** From this size on there is room for names of nodes. */
const LABELLED = 17;
const LABEL_PX = 15;
/** Names of fewer letters are not cut. */
const LABEL_WIDTH_PX = 92;

/** Returns the layout with the largest cells that fit into `height`; the smallest, if none fit. */
export function layoutOf(nodes: readonly MapNode[], width: number, height: number): Layout {
  const most = nodes.reduce((cells, { rows }) => Math.max(cells, rows.length), 1);
  let layout = sized(nodes, most, width, CELL_MOST);
  for (let cell = CELL_MOST - 1; layout.height > height && cell >= CELL_LEAST; cell -= 1) {
    layout = sized(nodes, most, width, cell);
  }
  return layout;
}

/** Returns the corner of a cell. */
export function cornerOf(layout: Layout, { tile, slot }: CellPlace): [x: number, y: number] {
  const { across, cell, gap, columns, tileWidth, tileHeight, label } = layout;
  const x = (tile % columns) * tileWidth + (slot % across) * (cell + gap);
  const y =
    Math.floor(tile / columns) * tileHeight + label + Math.floor(slot / across) * (cell + gap);
  return [x, y];
}

/** Returns the cell at a point, with the gap behind it; `null` between nodes. */
export function cellAt(layout: Layout, x: number, y: number): CellPlace | null {
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

/** Returns the nearest cell in a direction; the same cell if there is none. */
export function neighbor(layout: Layout, from: CellPlace, direction: Direction): CellPlace {
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
    // Nodes with fewer GPUs than others leave places empty.
    if (slot < (nodes[tile]?.rows.length ?? 0)) {
      return { tile, slot };
    }
  }
}

function sized(nodes: readonly MapNode[], most: number, width: number, cell: number): Layout {
  const gap = cell >= 12 ? 2 : 1;
  const across = most <= 4 ? most : most <= 8 ? 4 : 8;
  const down = Math.ceil(most / across);
  const label = cell >= LABELLED ? LABEL_PX : 0;
  // Nodes of one cell need no more room between them than the cells of a node.
  const apart = most === 1 && label === 0 ? gap : Math.max(3, Math.round(cell * 0.5));
  const tileWidth = Math.max(across * (cell + gap) - gap, label === 0 ? 0 : LABEL_WIDTH_PX) + apart;
  const tileHeight = down * (cell + gap) - gap + apart + label;
  const columns = Math.max(1, Math.floor((width + apart) / tileWidth));
  const height = Math.max(0, Math.ceil(nodes.length / columns) * tileHeight - apart);
  return { nodes, cell, gap, across, down, tileWidth, tileHeight, label, columns, width, height };
}
