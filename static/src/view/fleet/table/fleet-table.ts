/** A table of GPUs or nodes: what both have in common. */

import { setText } from '../../../lib/dom';
import { trans } from '../../../lib/translation';
import type { Columns, Measures } from '../../../model/fleet/columns';
import {
  LOOKS,
  metricLabel,
  missingText,
  readingText,
  shareOf,
  type Measured,
} from '../../../model/fleet/metric';
import type { Sort, SortKey } from '../../../model/fleet/order';
import { Table, writeMeter, type Column } from './table';

/** A GPU by its row, or a node by its place. */
export interface FleetRow {
  columns: Columns;
  measures: Measures;
  place: number;
}

export interface FleetTableListener {
  onSort: (key: SortKey) => void;
  onSelect: (place: number | null) => void;
  onOpen: (place: number) => void;
}

export class FleetTable {
  readonly element: HTMLElement;
  private readonly table: Table<FleetRow, SortKey>;

  /** `measuresOf` returns the readings of the rows. */
  constructor(
    id: string,
    name: string,
    columns: readonly Column<FleetRow, SortKey>[],
    private readonly measuresOf: (columns: Columns) => Measures,
    { onSort, onSelect, onOpen }: FleetTableListener,
  ) {
    this.table = new Table({
      id,
      name,
      columns,
      onSort,
      onSelect: (row) => onSelect(row?.place ?? null),
      onOpen: ({ place }) => onOpen(place),
    });
    this.element = this.table.element;
  }

  /** `order` are the places of the rows; `selected` is one of them. */
  update(columns: Columns, order: Uint32Array, sort: Sort, selected: number | null): void {
    const measures = this.measuresOf(columns);
    this.table.update({
      count: order.length,
      rowAt: (i) => {
        const place = order[i];
        return place === undefined ? place : { columns, measures, place };
      },
      sort,
      selected: selected === null ? -1 : order.indexOf(selected),
    });
  }

  focus(): void {
    this.element.focus({ preventScroll: true });
  }

  dispose(): void {
    this.table.dispose();
  }
}

/** A column of readings. */
export function measuredColumn(
  metric: Measured,
  width: number,
  title?: string,
): Column<FleetRow, SortKey> {
  return {
    sort: metric,
    label: metricLabel(metric),
    ...(title !== undefined && { title }),
    kind: 'number',
    width,
    write: (cell, { columns, measures, place }) => {
      const { value, color } = LOOKS[metric];
      const text = readingText(measures, metric, place);
      if (metric === 'utilization') {
        const share = shareOf(measures, metric, place);
        writeMeter(cell, text, share, `var(--gpumon-${color})`);
      } else {
        setText(cell, text);
      }
      cell.title = Number.isNaN(measures.readings[value][place] ?? NaN)
        ? (missingText(columns, metric) ?? trans.__('no reading'))
        : '';
    },
  };
}
