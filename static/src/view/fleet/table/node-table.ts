/** All nodes in a table, summed up over their GPUs. */

import { setText } from '../../../lib/dom';
import { count } from '../../../lib/format';
import { trans } from '../../../lib/translation';
import { modelOf, type Columns } from '../../../model/fleet/columns';
import { conditionText, levelOf, stateText } from '../../../model/fleet/describe';
import type { SortKey } from '../../../model/fleet/order';
import type { GpuState } from '../../../wire';
import type { NodeLinks } from '../node-link';
import { writeModel, writeNode, writeState } from './cells';
import { FleetTable, measuredColumn, type FleetRow, type FleetTableListener } from './fleet-table';
import type { Column } from './table';

export function nodeTable(links: NodeLinks, listener: FleetTableListener): FleetTable {
  return new FleetTable(
    'gpumon-fleet-nodes',
    trans.__('Nodes'),
    [
      {
        sort: 'name',
        label: trans.__('Node'),
        kind: 'name',
        width: 124,
        write: (cell, { columns, place }) => writeNode(cell, links, columns, place),
      },
      {
        label: trans.__('GPUs'),
        kind: 'text',
        wide: true,
        write: (cell, { columns, place }) => {
          const [first] = columns.rowsOf(place);
          const model = first === undefined ? null : modelOf(columns, first);
          writeModel(cell, model, `${count(columns.nodes.gpus[place] ?? 0)} × `);
        },
      },
      {
        sort: 'worst',
        label: trans.__('Worst state'),
        kind: 'text',
        width: 184,
        narrow: 110,
        write: (cell, { columns, place }) => writeWorst(cell, columns, place),
      },
      { ...measuredColumn('utilization', 116, trans.__('Average of the GPUs')), narrow: 70 },
      { ...measuredColumn('memory', 146, trans.__('Sum of the GPUs')), wide: true },
      { ...measuredColumn('power', 132, trans.__('Sum of the GPUs')), wide: true },
      { ...measuredColumn('temperature', 100, trans.__('The hottest of the GPUs')), wide: true },
      inState('free', trans.__('Free'), false),
      inState('idle', trans.__('Idle, held'), true),
    ],
    (columns) => columns.nodes,
    listener,
  );
}

function inState(state: GpuState, label: string, wide: boolean): Column<FleetRow, SortKey> {
  return {
    label,
    kind: 'number',
    width: 70,
    narrow: 60,
    wide,
    write: (cell, { columns, place }) => {
      const many = columns.nodes.states[state]?.[place] ?? 0;
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
