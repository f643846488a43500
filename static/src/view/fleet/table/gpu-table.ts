/** All GPUs in a table that sorts any number of them. */

import { duration } from '../../../lib/format';
import { trans } from '../../../lib/translation';
import { modelOf, type Columns } from '../../../model/fleet/columns';
import { ownerText, stateText } from '../../../model/fleet/describe';
import type { NodeLinks } from '../node-link';
import { writeCondition, writeModel, writeNode, writeState, writeText } from './cells';
import { FleetTable, measuredColumn, type FleetTableListener } from './fleet-table';

export function gpuTable(links: NodeLinks, listener: FleetTableListener): FleetTable {
  return new FleetTable(
    'gpumon-fleet-gpus',
    trans.__('GPUs'),
    [
      {
        sort: 'name',
        label: trans.__('GPU'),
        kind: 'name',
        width: 138,
        write: (cell, { columns, place }) =>
          writeNode(
            cell,
            links,
            columns,
            columns.node[place] ?? 0,
            ` / ${columns.index[place] ?? 0}`,
          ),
      },
      {
        sort: 'model',
        label: trans.__('Model'),
        kind: 'text',
        wide: true,
        write: (cell, { columns, place }) => writeModel(cell, modelOf(columns, place)),
      },
      {
        sort: 'worst',
        label: trans.__('State'),
        kind: 'text',
        width: 184,
        narrow: 56,
        write: (cell, { columns, place }) => writeWorst(cell, columns, place),
      },
      { ...measuredColumn('utilization', 116), narrow: 70 },
      { ...measuredColumn('memory', 132), narrow: 106 },
      { ...measuredColumn('power', 112), wide: true },
      { ...measuredColumn('temperature', 100), wide: true },
      {
        sort: 'owner',
        label: trans.__('Held by'),
        kind: 'text',
        wide: true,
        write: (cell, { columns, place }) =>
          writeText(cell, heldBy(columns, place), columns.fleet.missing.owners),
      },
      {
        sort: 'idle',
        label: trans.__('Idle for'),
        title: trans.__('For how long no kernel has run while somebody holds memory'),
        kind: 'number',
        wide: true,
        width: 92,
        write: (cell, { columns, place }) => {
          const idle_s = columns.idle_s[place] ?? NaN;
          writeText(cell, Number.isNaN(idle_s) ? '' : duration(idle_s * 1000));
        },
      },
    ],
    (columns) => columns,
    listener,
  );
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
    writeCondition(cell, worst);
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
