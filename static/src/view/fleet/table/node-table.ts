/** All nodes in a table, summed up over their GPUs. */

import { setText } from '../../../lib/dom';
import { count } from '../../../lib/format';
import { trans } from '../../../lib/translation';
import { modelOf, USE, type Columns } from '../../../model/fleet/columns';
import { conditionText, levelOf, stateText } from '../../../model/fleet/describe';
import { LOOKS, metricLabel, valueText, type Measured } from '../../../model/fleet/metric';
import type { Nodes } from '../../../model/fleet/nodes';
import type { SortKey } from '../../../model/fleet/order';
import type { NodeLinks } from '../node-link';
import { writeModel, writeNode, writeState } from './cells';
import type { RowListener } from './gpu-table';
import { Table, writeMeter, type Column, type TableContent } from './table';

interface Row {
  columns: Columns;
  nodes: Nodes;
  node: number;
}

/** Temperatures are the hottest of a node's, the others averages and sums. */
const LABELS: Record<Measured, () => string> = {
  utilization: () => trans.__('Average of the GPUs'),
  memory: () => trans.__('Sum of the GPUs'),
  power: () => trans.__('Sum of the GPUs'),
  temperature: () => trans.__('The hottest of the GPUs'),
};

export class NodeTable {
  readonly element: HTMLElement;
  private readonly table: Table<Row, SortKey>;

  constructor(links: NodeLinks, { onSort, onSelect, onOpen }: RowListener) {
    this.table = new Table<Row, SortKey>({
      id: 'gpumon-fleet-nodes',
      name: trans.__('Nodes'),
      columns: [
        {
          sort: 'name',
          label: trans.__('Node'),
          kind: 'name',
          width: 124,
          write: (cell, { columns, node }) => writeNode(cell, links, columns, node),
        },
        {
          label: trans.__('GPUs'),
          kind: 'text',
          wide: true,
          write: (cell, { columns, nodes, node }) => {
            const [first] = columns.rowsOf(node);
            const model = first === undefined ? null : modelOf(columns, first);
            writeModel(cell, model, `${count(nodes.gpus[node] ?? 0)} × `);
          },
        },
        {
          sort: 'worst',
          label: trans.__('Worst state'),
          kind: 'text',
          width: 184,
          narrow: 110,
          write: (cell, { columns, node }) => writeWorst(cell, columns, node),
        },
        { ...measured('utilization', 116), narrow: 70 },
        { ...measured('memory', 146), wide: true },
        { ...measured('power', 132), wide: true },
        { ...measured('temperature', 100), wide: true },
        used(USE.free, trans.__('Free'), false),
        used(USE.idle, trans.__('Idle, held'), true),
      ],
      onSort,
      onSelect: (line) => onSelect(line?.node ?? null),
      onOpen: ({ node }) => onOpen(node),
    });
    this.element = this.table.element;
  }

  update(
    columns: Columns,
    nodes: Nodes,
    order: Uint32Array,
    sort: TableContent<Row, SortKey>['sort'],
    selected: number | null,
  ): void {
    this.table.update({
      count: order.length,
      rowAt: (place) => ({ columns, nodes, node: order[place] ?? 0 }),
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

function measured(metric: Measured, width: number): Column<Row, SortKey> {
  const { value, limit, unit, color, field } = LOOKS[metric];
  return {
    sort: metric,
    label: metricLabel(metric),
    title: LABELS[metric](),
    kind: 'number',
    width,
    write: (cell, { columns, nodes, node }) => {
      const reading = nodes[value][node] ?? NaN;
      const of = limit === null ? NaN : (nodes[limit][node] ?? NaN);
      const text = valueText(unit, reading, of);
      if (metric === 'utilization') {
        writeMeter(cell, text, reading / 100, `var(--gpumon-${color})`);
      } else {
        setText(cell, text);
      }
      cell.title = Number.isNaN(reading)
        ? (columns.fleet.missing[field] ?? trans.__('no reading'))
        : '';
    },
  };
}

function used(use: number, label: string, wide: boolean): Column<Row, SortKey> {
  return {
    label,
    kind: 'number',
    width: 70,
    narrow: 60,
    wide,
    write: (cell, { nodes, node }) => {
      const many = nodes.used[use]?.[node] ?? 0;
      setText(cell, many === 0 ? '' : count(many));
    },
  };
}

/** The state of the worst GPU, and how many are as bad. */
function writeWorst(cell: HTMLElement, columns: Columns, node: number): void {
  const rows = columns.rowsOf(node);
  const states = [...rows].map((row) => stateText(columns, row));
  const gone = states.filter(({ level }) => level === 'critical');
  const [first] = gone;
  if (first !== undefined) {
    const many = gone.length < rows.length && gone.length > 1 ? ` ×${gone.length}` : '';
    writeState(cell, `${first.text}${many}`, 'critical', first.reason);
    return;
  }
  const conditions = [...rows].flatMap((row) => columns.conditionsOf(row));
  const worst = conditions.reduce((most, { severity }) => Math.max(most, severity), 0);
  const [named] = conditions.filter(({ severity }) => severity === worst);
  const many = conditions.filter(({ kind }) => kind === named?.kind).length;
  writeState(
    cell,
    named === undefined
      ? trans.__('OK')
      : `${conditionText(named.kind)}${many > 1 ? ` ×${many}` : ''}`,
    levelOf(worst),
  );
}
