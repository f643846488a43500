/** All GPUs at once, a cell each, on a canvas; pointer and keys go from one to the other. */

import { h, setAttribute, setShown, setStyle, setText } from '../../../lib/dom';
import { observeWidth } from '../../../lib/screen';
import { trans } from '../../../lib/translation';
import type { Columns } from '../../../model/fleet/columns';
import { rowName } from '../../../model/fleet/columns';
import { stateText } from '../../../model/fleet/describe';
import { LOOKS, metricLabel, readingText, type FleetMetric } from '../../../model/fleet/metric';
import type { Palette } from '../../palette';
import {
  cellAt,
  cornerOf,
  layoutOf,
  neighbor,
  type CellPlace,
  type Direction,
  type Layout,
} from './layout';
import { paintMap } from './paint';
import { lookOf, rampOf, SEVERE } from './scale';

export interface MapContent {
  columns: Columns;
  metric: FleetMetric;
  /** The nodes that are shown, in their order. */
  nodes: Uint32Array;
  shown: Uint8Array | null;
  /** The row that is selected; `null` where none is, or it is not shown. */
  selected: number | null;
}

export interface MapListener {
  /** What is pointed at; `null` for nothing. */
  onPoint: (row: number | null) => void;
  onSelect: (row: number | null, by: 'pointer' | 'keys') => void;
  onOpen: (row: number) => void;
}

const KEYS: Partial<Record<string, Direction>> = {
  ArrowLeft: 'left',
  ArrowRight: 'right',
  ArrowUp: 'up',
  ArrowDown: 'down',
};
/** Steps of PageUp and PageDown. */
const PAGE = 10;
/** The height that all cells should fit into, so that the eye has them at once. */
const HEIGHT_LEAST_PX = 420;
const HEIGHT_MOST_PX = 1000;
/** What stands above and below the map. */
const BESIDES_PX = 340;
const HEIGHT_NARROW_PX = 900;
const NARROW_PX = 560;

export class HeatMap {
  readonly element: HTMLElement;
  private readonly canvas = h('canvas', { 'aria-hidden': 'true' });
  private readonly frame: HTMLElement;
  private readonly ring = h('span', { class: 'gpumon-map-ring', 'aria-hidden': 'true' });
  private readonly pointed = h('span', {
    class: 'gpumon-map-ring gpumon-map-pointed',
    'aria-hidden': 'true',
  });
  private readonly tip = h('div', { class: 'gpumon-map-tip', 'aria-hidden': 'true' });
  private readonly tipName = h('strong', {});
  private readonly tipValue = h('span', {});
  private readonly stopWidth: () => void;
  private width = 0;
  private layout: Layout | null = null;
  private content: MapContent | null = null;
  private palette: Palette | null = null;
  /** What is drawn, so that the same is not drawn again. */
  private drawn: readonly unknown[] = [];
  private pointedRow: number | null = null;

  constructor(private readonly listener: MapListener) {
    this.tip.append(this.tipName, this.tipValue);
    this.frame = h(
      'div',
      {
        class: 'gpumon-map',
        tabindex: '0',
        role: 'application',
        'data-testid': 'gpumon-fleet-map',
      },
      this.canvas,
      this.pointed,
      this.ring,
      this.tip,
    );
    this.element = this.frame;
    this.stopWidth = observeWidth(this.frame, (width_px) => {
      if (width_px !== this.width) {
        this.width = width_px;
        this.place();
        this.paint();
      }
    });
    this.frame.addEventListener('pointermove', (event) => this.point(this.rowAt(event)));
    this.frame.addEventListener('pointerleave', () => this.point(null));
    this.frame.addEventListener('click', (event) => {
      const row = this.rowAt(event);
      listener.onSelect(row, 'pointer');
    });
    this.frame.addEventListener('dblclick', (event) => {
      const row = this.rowAt(event);
      if (row !== null) {
        listener.onOpen(row);
      }
    });
    this.frame.addEventListener('keydown', (event) => this.onKey(event));
    this.frame.addEventListener('focus', () => {
      if (this.content?.selected === null && this.frame.matches(':focus-visible')) {
        this.select({ tile: 0, slot: 0 });
      }
    });
  }

  update(content: MapContent, palette: Palette): void {
    const before = this.content;
    const isMoved = before?.columns !== content.columns || before.nodes !== content.nodes;
    this.content = content;
    this.palette = palette;
    const name = content.columns.byGpu
      ? trans.__('Heat map of GPUs')
      : trans.__('Heat map of nodes');
    setAttribute(this.frame, 'aria-label', trans.__('%1: %2', name, metricLabel(content.metric)));
    setAttribute(
      this.frame,
      'aria-description',
      trans.__('Arrow keys go from one to the other, Enter opens the node, Escape selects none.'),
    );
    if (isMoved || this.layout === null) {
      this.place();
    }
    this.paint();
    this.moveRings();
  }

  focus(): void {
    this.frame.focus({ preventScroll: true });
  }

  dispose(): void {
    this.stopWidth();
  }

  private place(): void {
    const { content, width } = this;
    if (content === null || width === 0) {
      return;
    }
    const nodes = Array.from(content.nodes, (node) => ({
      node,
      rows: content.columns.rowsOf(node),
    }));
    const room = Math.min(
      HEIGHT_MOST_PX,
      Math.max(HEIGHT_LEAST_PX, window.innerHeight - BESIDES_PX),
    );
    this.layout = layoutOf(nodes, width, width < NARROW_PX ? HEIGHT_NARROW_PX : room);
    setStyle(this.frame, 'height', `${this.layout.height}px`);
    this.moveRings();
  }

  private paint(): void {
    const { content, layout, palette, canvas } = this;
    if (content === null || layout === null || palette === null) {
      return;
    }
    const { columns, metric, shown } = content;
    const px = Math.max(1, globalThis.devicePixelRatio || 1);
    const now = [columns, metric, shown, layout, palette, px];
    const context = now.every((part, i) => part === this.drawn[i]) ? null : canvas.getContext('2d');
    if (context === null) {
      return;
    }
    this.drawn = now;
    const [width, height] = [
      Math.round(layout.width * px),
      Math.max(1, Math.round(layout.height * px)),
    ];
    if (canvas.width !== width || canvas.height !== height) {
      canvas.width = width;
      canvas.height = height;
    }
    paintMap(context, {
      layout,
      looks: Uint8Array.from({ length: columns.count }, (_, row) => lookOf(columns, metric, row)),
      shown,
      severe: (row) => (columns.severity[row] ?? 0) >= SEVERE,
      nameOf: (node) => columns.nodeNames[node] ?? '',
      ramp: rampOf(palette, metric, (css) => parsed(context, css)),
      palette,
      px,
    });
  }

  private rowAt({ clientX, clientY }: MouseEvent): number | null {
    const { left, top } = this.frame.getBoundingClientRect();
    const place = this.layout === null ? null : cellAt(this.layout, clientX - left, clientY - top);
    return this.rowOf(place);
  }

  private rowOf(place: CellPlace | null): number | null {
    return place === null ? null : (this.layout?.nodes[place.tile]?.rows[place.slot] ?? null);
  }

  /** The place of a row on the map. */
  private placeOf(row: number): CellPlace | undefined {
    const node = this.content?.columns.node[row];
    const tile = this.layout?.nodes.findIndex((one) => one.node === node) ?? -1;
    const slot = Array.prototype.indexOf.call(this.layout?.nodes[tile]?.rows ?? [], row);
    return slot < 0 ? undefined : { tile, slot };
  }

  private point(row: number | null): void {
    if (row !== this.pointedRow) {
      this.pointedRow = row;
      this.moveRings();
      this.listener.onPoint(row);
    }
  }

  private select(place: CellPlace): void {
    const row = this.rowOf(place);
    if (row !== null) {
      this.listener.onSelect(row, 'keys');
    }
  }

  private onKey(event: KeyboardEvent): void {
    const { content, layout } = this;
    if (content === null || layout === null || event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    const { selected } = content;
    const from = selected === null ? undefined : this.placeOf(selected);
    const direction = KEYS[event.key];
    if (direction !== undefined) {
      this.select(from === undefined ? { tile: 0, slot: 0 } : neighbor(layout, from, direction));
    } else if (event.key === 'PageDown' || event.key === 'PageUp') {
      let place = from ?? { tile: 0, slot: 0 };
      for (let step = 0; step < PAGE; step += 1) {
        place = neighbor(layout, place, event.key === 'PageDown' ? 'down' : 'up');
      }
      this.select(place);
    } else if (event.key === 'Home' || event.key === 'End') {
      const tile = event.key === 'Home' ? 0 : layout.nodes.length - 1;
      this.select({
        tile,
        slot: event.key === 'Home' ? 0 : (layout.nodes[tile]?.rows.length ?? 1) - 1,
      });
    } else if (event.key === 'Enter' && selected !== null) {
      this.listener.onOpen(selected);
    } else if (event.key === 'Escape' && selected !== null) {
      this.listener.onSelect(null, 'keys');
    } else {
      return;
    }
    event.preventDefault();
    event.stopPropagation();
  }

  /** A frame around what is selected and what is pointed at, and a note beside the pointer. */
  private moveRings(): void {
    this.moveRing(this.ring, this.content?.selected ?? null);
    this.moveRing(this.pointed, this.pointedRow);
    const { content, layout, pointedRow } = this;
    const place = pointedRow === null ? undefined : this.placeOf(pointedRow);
    setShown(this.tip, place !== undefined);
    if (content === null || layout === null || pointedRow === null || place === undefined) {
      return;
    }
    const { columns, metric } = content;
    setText(this.tipName, rowName(columns, pointedRow));
    const state = stateText(columns, pointedRow);
    const isNumber =
      metric !== 'conditions' &&
      !Number.isNaN(columns.readings[LOOKS[metric].value][pointedRow] ?? NaN);
    setText(this.tipValue, isNumber ? readingText(columns, metric, pointedRow) : state.text);
    const [x, y] = cornerOf(layout, place);
    const isRight = x > layout.width * 0.6;
    setStyle(this.tip, 'left', isRight ? 'auto' : `${x + layout.cell + 8}px`);
    setStyle(this.tip, 'right', isRight ? `${layout.width - x + 8}px` : 'auto');
    setStyle(this.tip, 'top', `${y - 8}px`);
  }

  private moveRing(ring: HTMLElement, row: number | null): void {
    const { layout } = this;
    const place = row === null ? undefined : this.placeOf(row);
    setShown(ring, place !== undefined);
    if (place === undefined || layout === null) {
      return;
    }
    const [x, y] = cornerOf(layout, place);
    setStyle(ring, 'transform', `translate(${x - 3}px, ${y - 3}px)`);
    setStyle(ring, 'width', `${layout.cell + 6}px`);
    setStyle(ring, 'height', `${layout.cell + 6}px`);
  }
}

/** A color as numbers: the canvas knows all ways to write one. */
function parsed(ctx: CanvasRenderingContext2D, css: string): [number, number, number] {
  ctx.fillStyle = '#888888';
  ctx.fillStyle = css;
  const text = ctx.fillStyle;
  const part = (at: number): number => Number.parseInt(text.slice(at, at + 2), 16);
  return text.startsWith('#') ? [part(1), part(3), part(5)] : [136, 136, 136];
}
