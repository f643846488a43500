/** All GPUs in a table that sorts any number of them. */

import { setText } from '../../../lib/dom';
import { duration } from '../../../lib/format';
import { trans } from '../../../lib/translation';
import { modelOf, type Columns } from '../../../model/fleet/columns';
import {
  conditionText,
  conditionTitle,
  levelOf,
  ownerText,
  stateText,
} from '../../../model/fleet/describe';
import {
  LOOKS,
  metricLabel,
  readingText,
  shareOf,
  type Measured,
} from '../../../model/fleet/metric';
import type { SortKey } from '../../../model/fleet/order';
import type { NodeLinks } from '../node-link';
import { writeModel, writeNode, writeState, writeText } from './cells';
import { Table, writeMeter, type Column, type TableContent } from './table';

interface Row {
  columns: Columns;
  row: number;
}

export interface RowListener {
  onSort: (key: SortKey) => void;
  onSelect: (row: number | null) => void;
  onOpen: (row: number) => void;
}

export class GpuTable {
  readonly element: HTMLElement;
  private readonly table: Table<Row, SortKey>;

  constructor(links: NodeLinks, { onSort, onSelect, onOpen }: RowListener) {
    this.table = new Table<Row, SortKey>({
      id: 'gpumon-fleet-gpus',
      name: trans.__('GPUs'),
      columns: [
        {
          sort: 'name',
          label: trans.__('GPU'),
          kind: 'name',
          width: 138,
          write: (cell, { columns, row }) =>
            writeNode(
              cell,
              links,
              columns,
              columns.node[row] ?? 0,
              ` / ${columns.index[row] ?? 0}`,
            ),
        },
        {
          sort: 'model',
          label: trans.__('Model'),
          kind: 'text',
          wide: true,
          write: (cell, { columns, row }) => writeModel(cell, modelOf(columns, row)),
        },
        {
          sort: 'worst',
          label: trans.__('State'),
          kind: 'text',
          width: 184,
          narrow: 56,
          write: (cell, { columns, row }) => writeWorst(cell, columns, row),
        },
        { ...measured('utilization', 116), narrow: 70 },
        { ...measured('memory', 132), narrow: 106 },
        { ...measured('power', 112), wide: true },
        { ...measured('temperature', 100), wide: true },
        {
          sort: 'owner',
          label: trans.__('Held by'),
          kind: 'text',
          wide: true,
          write: (cell, { columns, row }) =>
            writeText(cell, heldBy(columns, row), columns.fleet.missing.owners),
        },
        {
          sort: 'idle',
          label: trans.__('Idle for'),
          title: trans.__('For how long no kernel has run while somebody holds memory'),
          kind: 'number',
          wide: true,
          width: 92,
          write: (cell, { columns, row }) => {
            const idle_s = columns.idle_s[row] ?? NaN;
            writeText(cell, Number.isNaN(idle_s) ? '' : duration(idle_s * 1000));
          },
        },
      ],
      onSort,
      onSelect: (line) => onSelect(line?.row ?? null),
      onOpen: ({ row }) => onOpen(row),
    });
    this.element = this.table.element;
  }

  /** `rows` in their order; `selected` is a row. */
  update(
    columns: Columns,
    rows: Uint32Array,
    sort: TableContent<Row, SortKey>['sort'],
    selected: number | null,
  ): void {
    this.table.update({
      count: rows.length,
      rowAt: (place) => ({ columns, row: rows[place] ?? 0 }),
      sort,
      selected: selected === null ? -1 : rows.indexOf(selected),
    });
  }

  focus(): void {
    this.element.focus({ preventScroll: true });
  }

  dispose(): void {
    this.table.dispose();
  }
}

function measured(metric: Measured, width: number): Column<Row, SortKey> {
  return {
    sort: metric,
    label: metricLabel(metric),
    kind: 'number',
    width,
    write: (cell, { columns, row }) => {
      const missing = columns.fleet.missing[LOOKS[metric].field];
      const text = readingText(columns, metric, row);
      if (metric === 'utilization') {
        writeMeter(
          cell,
          text,
          shareOf(columns, metric, row),
          `var(--gpumon-${LOOKS[metric].color})`,
        );
      } else {
        setText(cell, text);
      }
      cell.title = Number.isNaN(columns.readings[LOOKS[metric].value][row] ?? NaN)
        ? (missing ?? trans.__('no reading'))
        : '';
    },
  };
}

/** The worst condition, or else what it is at. */
function writeWorst(cell: HTMLElement, columns: Columns, row: number): void {
  const state = stateText(columns, row);
  const conditions = columns.conditionsOf(row);
  const worst = conditions.reduce<(typeof conditions)[number] | null>(
    (found, one) => (found === null || one.severity > found.severity ? one : found),
    null,
  );
  if (state.level === 'critical' || worst === null || worst.kind === 'held_idle') {
    writeState(cell, state.text, state.level, state.reason);
  } else {
    writeState(
      cell,
      conditionText(worst.kind),
      levelOf(worst.severity),
      conditionTitle(worst.kind),
    );
  }
}

function heldBy(columns: Columns, row: number): string | null {
  const [first, ...others] = columns.ownersOf(row).flatMap((place) => columns.owner(place) ?? []);
  if (first === undefined) {
    return columns.fleet.missing.owners === undefined ? '' : null;
  }
  return others.length === 0
    ? ownerText(first)
    : trans.__('%1 and %2 more', ownerText(first), others.length);
}
