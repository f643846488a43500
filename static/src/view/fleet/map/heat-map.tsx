import type { CSSProperties } from 'preact';
import { useLayoutEffect, useMemo, useRef, useState } from 'preact/hooks';

import { DASH } from '../../../lib/format';
import { observeWidth } from '../../../lib/dom';
import { trans } from '../../../lib/translation';
import { stateText } from '../../../model/fleet/describe';
import {
  isNumeric,
  metricLabel,
  readingText,
  scaleEnds,
  explainMissingReading,
} from '../../../model/fleet/metric';
import { RowName, type Scene } from '../scene';
import {
  cellAt,
  cornerOf,
  layoutOf,
  findNeighbor,
  paintMap,
  type CellPosition,
  type Direction,
  type Layout,
} from './draw';

/** The directions in which keys move the selection, and the number of cells. */
const MOVES_BY_KEY: Partial<Record<string, [direction: Direction, cells: number]>> = {
  ArrowLeft: ['left', 1],
  ArrowRight: ['right', 1],
  ArrowUp: ['up', 1],
  ArrowDown: ['down', 1],
  PageUp: ['up', 10],
  PageDown: ['down', 10],
};
/**
 * The map is made to fit into a height, which is at least this value and at most `MAX_HEIGHT_PX`.
 * If the map fits, all cells are visible without scrolling.
 */
const MIN_HEIGHT_PX = 420;
const MAX_HEIGHT_PX = 1000;
/**
 * The height of all elements above and below the map, which is subtracted from the height of the
 * window.
 */
const OTHER_CONTENT_PX = 340;
const HEIGHT_NARROW_PX = 900;
const NARROW_PX = 560;

/** A canvas with one cell per GPU. The pointer and keys move from cell to cell. */
export function HeatMap(scene: Scene) {
  const { columns, nodes, matches, selected, palette, pointed, point, select, openNode } = scene;
  const { metric } = scene.shown;
  const map = useRef<HTMLDivElement>(null);
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  useLayoutEffect(
    () => (map.current === null ? undefined : observeWidth(map.current, setWidth)),
    [],
  );
  const layout = useMemo(() => {
    const tiles = Array.from(nodes, (node) => ({ node, rows: columns.rowsOf(node) }));
    const room = Math.max(MIN_HEIGHT_PX, window.innerHeight - OTHER_CONTENT_PX);
    const height = width < NARROW_PX ? HEIGHT_NARROW_PX : Math.min(MAX_HEIGHT_PX, room);
    return width === 0 ? null : layoutOf(tiles, width, height);
  }, [columns, nodes, width]);
  const px = Math.max(1, globalThis.devicePixelRatio || 1);
  useLayoutEffect(() => {
    const context = canvas.current?.getContext('2d') ?? null;
    if (layout === null || context === null) {
      return;
    }
    context.canvas.width = Math.round(layout.width * px);
    context.canvas.height = Math.max(1, Math.round(layout.height * px));
    paintMap(context, {
      layout,
      columns,
      metric,
      shown: matches,
      palette,
      px,
    });
  }, [columns, metric, matches, layout, palette, px]);

  const rowOf = (place: CellPosition | null): number | null =>
    place === null ? null : (layout?.nodes[place.tile]?.rows[place.slot] ?? null);
  const rowAt = ({ clientX, clientY, currentTarget }: MouseEvent): number | null => {
    const { left, top } = (currentTarget as Element).getBoundingClientRect();
    return layout === null ? null : rowOf(cellAt(layout, clientX - left, clientY - top));
  };
  const placeOf = (row: number | null): CellPosition | null => {
    const tile = layout?.nodes.findIndex(({ node }) => node === columns.node[row ?? -1]) ?? -1;
    const slot = Array.from(layout?.nodes[tile]?.rows ?? []).indexOf(row ?? -1);
    return slot < 0 ? null : { tile, slot };
  };
  const moveTo = (place: CellPosition): void => {
    const row = rowOf(place);
    if (row !== null) {
      select(row, true);
    }
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const { key } = event;
    if (layout === null || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const from = placeOf(selected);
    const move = MOVES_BY_KEY[key];
    const tile = layout.nodes.length - 1;
    if (move !== undefined) {
      const [direction, cells] = move;
      // If no cell is selected, the key selects the first cell.
      const steps = from === null ? 0 : cells;
      let place = from ?? { tile: 0, slot: 0 };
      for (let step = 0; step < steps; step += 1) {
        place = findNeighbor(layout, place, direction);
      }
      moveTo(place);
    } else if (key === 'Home') {
      moveTo({ tile: 0, slot: 0 });
    } else if (key === 'End') {
      moveTo({ tile, slot: (layout.nodes[tile]?.rows.length ?? 1) - 1 });
    } else if (key === 'Enter' && selected !== null) {
      openNode(columns.node[selected] ?? 0);
    } else if (key === 'Escape' && selected !== null) {
      select(null, true);
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  };
  /** Returns a frame around a cell. */
  const ring = (place: CellPosition | null, className = '') => {
    if (layout === null || place === null) {
      return null;
    }
    const [x, y] = cornerOf(layout, place);
    const size = `${layout.cell + 6}px`;
    const style = { transform: `translate(${x - 3}px, ${y - 3}px)`, width: size, height: size };
    return <span class={`gpumon-map-ring ${className}`} aria-hidden="true" style={style} />;
  };
  const name = columns.byGpu ? trans.__('Heat map of GPUs') : trans.__('Heat map of nodes');
  const tip = placeOf(pointed);
  return (
    <>
      <div
        ref={map}
        class="gpumon-map"
        data-testid="gpumon-fleet-map"
        role="application"
        tabIndex={0}
        aria-label={trans.__('%1: %2', name, metricLabel(metric))}
        aria-description={trans.__(
          'Arrow keys select another cell, Enter opens the node, Escape clears the selection.',
        )}
        style={{ height: layout === null ? undefined : `${layout.height}px` }}
        onPointerMove={(event) => point(rowAt(event))}
        onPointerLeave={() => point(null)}
        onClick={(event) => select(rowAt(event), false)}
        onDblClick={(event) => {
          const row = rowAt(event);
          if (row !== null) {
            openNode(columns.node[row] ?? 0);
          }
        }}
        onKeyDown={onKeyDown}
        onFocus={({ currentTarget }) => {
          if (selected === null && currentTarget.matches(':focus-visible')) {
            moveTo({ tile: 0, slot: 0 });
          }
        }}
      >
        <canvas ref={canvas} aria-hidden="true" />
        {ring(tip, 'gpumon-map-pointed')}
        {ring(placeOf(selected))}
        {layout !== null && tip !== null && pointed !== null && (
          <div class="gpumon-map-tip" aria-hidden="true" style={tipStyle(layout, tip)}>
            <strong>
              <RowName columns={columns} row={pointed} />
            </strong>
            <span>{readingOrStateText(scene, pointed)}</span>
          </div>
        )}
      </div>
      <Legend {...scene} />
    </>
  );
}

/** Places the tooltip next to the cell, on the side with more room. */
function tipStyle(layout: Layout, place: CellPosition): CSSProperties {
  const [x, y] = cornerOf(layout, place);
  return {
    top: `${y - 8}px`,
    ...(x > layout.width * 0.6
      ? { right: `${layout.width - x + 8}px` }
      : { left: `${x + layout.cell + 8}px` }),
  };
}

/** Returns the displayed reading of a row, or its state if there is no reading. */
function readingOrStateText({ columns, shown: { metric } }: Scene, row: number): string {
  const text = isNumeric(metric) ? readingText(columns, metric, row) : DASH;
  return text === DASH ? stateText(columns, row).text : text;
}

/** The legend of the map's colors. */
function Legend({ columns, shown: { metric } }: Scene) {
  const [low, high] = isNumeric(metric) ? scaleEnds(metric) : [];
  const missing = explainMissingReading(columns, metric);
  const lost = { lost: trans.__('Not responding'), unknown: trans.__('Node unreachable') };
  const looks: Record<string, string> =
    metric === 'conditions'
      ? {
          calm: trans.__('None'),
          notice: trans.__('Notice'),
          warning: trans.__('Warning'),
          critical: trans.__('Critical'),
          ...lost,
        }
      : metric === 'state'
        ? {
            free: trans.__('Free'),
            idle: trans.__('Idle, but held'),
            busy: trans.__('In use'),
            ...lost,
            missing: trans.__('Unknown'),
          }
        : {
            severe: trans.__('Critical condition'),
            missing:
              missing === undefined ? trans.__('No reading') : trans.__('No reading: %1', missing),
            ...lost,
          };
  return (
    <div class="gpumon-fleet-legend" aria-hidden="true">
      {isNumeric(metric) && (
        <span class="gpumon-fleet-sign-of">
          <span>{low}</span>
          <span class="gpumon-fleet-ramp" style={{ '--_color': `var(--gpumon-${metric})` }} />
          <span>{high}</span>
        </span>
      )}
      {Object.entries(looks).map(([look, text]) => (
        <span key={look} class="gpumon-fleet-sign-of">
          <span class="gpumon-fleet-sign" data-look={look} />
          <span>{text}</span>
        </span>
      ))}
    </div>
  );
}
