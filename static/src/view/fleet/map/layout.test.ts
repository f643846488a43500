import { describe, expect, it } from 'vitest';

import { cellAt, cornerOf, layoutOf, findNeighbor, type MapNode } from './draw';

const nodesOf = (...gpus: number[]): MapNode[] =>
  gpus.map((rows, node) => ({ node, rows: Array<number>(rows).fill(0) }));
const many = nodesOf(...Array<number>(1000).fill(8));

describe('heat map layout', () => {
  it('map has largest cells that fit', () => {
    const wide = layoutOf(many, 1060, 520);
    expect(wide.height).toBeLessThanOrEqual(520);
    expect(wide.columns * wide.tileWidth).toBeLessThanOrEqual(
      1060 + wide.tileWidth - (wide.cell + wide.gap) * 4,
    );
    expect(layoutOf(many, 1060, 900).cell).toBeGreaterThan(wide.cell);
    expect(layoutOf(many, 300, 10).cell).toBe(4);
    expect(layoutOf(nodesOf(8, 8), 1060, 520).label).toBeGreaterThan(0);
  });

  it('positions match cells, gaps match no cell', () => {
    for (const layout of [layoutOf(many, 1060, 520), layoutOf(nodesOf(8, 3, 16), 400, 500)]) {
      layout.nodes.forEach(({ rows }, tile) => {
        for (let slot = 0; slot < rows.length; slot += 1) {
          const [x, y] = cornerOf(layout, { tile, slot });
          expect(cellAt(layout, x, y)).toEqual({ tile, slot });
          expect(cellAt(layout, x + layout.cell - 0.5, y + layout.cell - 0.5)).toEqual({
            tile,
            slot,
          });
        }
      });
      expect(cellAt(layout, layout.tileWidth - 1, 20)).toBeNull();
      expect(cellAt(layout, -1, 5)).toBeNull();
      expect(cellAt(layout, 5, layout.height + 100)).toBeNull();
    }
  });

  it('arrow keys move between nodes, skipping missing cells', () => {
    const layout = layoutOf(nodesOf(8, 2, 8), 4000, 500);
    expect(layout.columns).toBeGreaterThan(2);
    const at = { tile: 0, slot: 3 };
    expect(findNeighbor(layout, at, 'right')).toEqual({ tile: 1, slot: 0 });
    expect(findNeighbor(layout, { tile: 1, slot: 1 }, 'right')).toEqual({ tile: 2, slot: 0 });
    expect(findNeighbor(layout, at, 'down')).toEqual({ tile: 0, slot: 7 });
    expect(findNeighbor(layout, { tile: 0, slot: 7 }, 'right')).toEqual({ tile: 2, slot: 4 });
    expect(findNeighbor(layout, at, 'up')).toBe(at);
    expect(findNeighbor(layout, { tile: 2, slot: 7 }, 'right')).toEqual({ tile: 2, slot: 7 });
  });
});
