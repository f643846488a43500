/** The tables of all GPUs and of all nodes. */

import type { ComponentChild } from 'preact';
import { useMemo } from 'preact/hooks';

import { count, DASH, duration } from '../../../lib/format';
import { trans } from '../../../lib/translation';
import { modelOf, type Columns, type Measures } from '../../../model/fleet/columns';
import { conditionText, levelOf, ownerText, stateText } from '../../../model/fleet/describe';
import {
  metricLabel,
  missingText,
  readingText,
  shareOf,
  type Measured,
} from '../../../model/fleet/metric';
import { rowOrder, type SortKey } from '../../../model/fleet/order';
import { sortedBy } from '../../../model/fleet/state';
import { totalText } from '../../../model/fleet/totals';
import type { GpuState } from '../../../wire';
import { Name, type Scene } from '../scene';
import { conditionCell, meterCell, modelCell, nodeCell, stateCell, textCell } from './cells';
import { Table, type Cell, type Column } from './table';

/** A column of rows by their places, with the cell of the sum of all. */
type Summed = Column<number, SortKey> & { sum: Cell | string };

export function GpuTable(scene: Scene): ComponentChild {
  const { columns, matches, totals, shown, selected, select, openNode } = scene;
  const rows = useMemo(() => {
    const order = rowOrder(columns, shown.sort);
    return matches === null ? order : order.filter((row) => matches[row] === 1);
  }, [columns, shown.sort, matches]);
  const [gpus = 0] = totals.gpus;
  const measured = (metric: Measured, width: number): Summed =>
    measuredColumn(scene, columns, metric, width);
  return (
    <SummedTable
      {...scene}
      id="gpumon-fleet-gpus"
      name={trans.__('GPUs')}
      rows={rows}
      place={selected}
      onSelect={(row) => select(row, true)}
      onOpen={(row) => openNode(columns.node[row] ?? 0)}
      table={[
        {
          sort: 'name',
          label: trans.__('GPU'),
          width: 150,
          cell: (row) => nodeCell(scene, columns.node[row] ?? 0, ` / ${columns.index[row] ?? 0}`),
          sum: trans._n('Total: %1 GPU', 'Total: %2 GPUs', gpus, count(gpus)),
        },
        {
          sort: 'model',
          label: trans.__('Model'),
          isWide: true,
          cell: (row) => modelCell(modelOf(columns, row)),
          sum: '',
        },
        {
          sort: 'worst',
          label: trans.__('State'),
          cell: (row) => worstOfGpu(columns, row),
          sum: trans.__('%1 in use', count(totals.states.busy?.[0] ?? 0)),
        },
        { sort: 'owner', ...holdersColumn(scene, (row) => [row]) },
        measured('utilization', 112),
        measured('memory', 118),
        measured('power', 106),
        { ...measured('temperature', 96), isWide: true },
        {
          sort: 'idle',
          label: trans.__('Idle for'),
          title: trans.__('For how long no kernel has run while somebody holds memory'),
          isNumber: true,
          isWide: true,
          width: 88,
          cell: (row) => {
            const idle_s = columns.idle_s[row] ?? NaN;
            return Number.isNaN(idle_s) ? '' : duration(idle_s * 1000);
          },
          sum: '',
        },
      ]}
    />
  );
}

export function NodeTable(scene: Scene): ComponentChild {
  const { columns, nodes, totals, selected, select, openNode } = scene;
  const [gpus = 0] = totals.gpus;
  const measured = (metric: Measured, width: number, title: string): Summed => ({
    ...measuredColumn(scene, columns.nodes, metric, width),
    title,
  });
  const inState = (state: GpuState, label: string): Summed => {
    const many = (of?: number): string => (of === undefined || of === 0 ? '' : count(of));
    return {
      label,
      isNumber: true,
      isWide: true,
      width: 70,
      cell: (node) => many(columns.nodes.states[state]?.[node]),
      sum: many(totals.states[state]?.[0]),
    };
  };
  return (
    <SummedTable
      {...scene}
      id="gpumon-fleet-nodes"
      name={trans.__('Nodes')}
      rows={nodes}
      place={selected === null ? null : (columns.node[selected] ?? null)}
      onSelect={(node) => select(node === null ? null : (columns.rowsOf(node)[0] ?? null), true)}
      onOpen={openNode}
      table={[
        {
          sort: 'name',
          label: trans.__('Node'),
          width: 140,
          cell: (node) => nodeCell(scene, node),
          sum: trans._n('Total: %1 node', 'Total: %2 nodes', nodes.length, count(nodes.length)),
        },
        {
          label: trans.__('GPUs'),
          isWide: true,
          cell: (node) => {
            const [first] = columns.rowsOf(node);
            const model = first === undefined ? null : modelOf(columns, first);
            return modelCell(model, `${count(columns.nodes.gpus[node] ?? 0)} × `);
          },
          sum: trans._n('%1 GPU', '%2 GPUs', gpus, count(gpus)),
        },
        {
          sort: 'worst',
          label: trans.__('Worst state'),
          cell: (node) => worstOfNode(columns, node),
          sum: trans.__('%1 in use', count(totals.states.busy?.[0] ?? 0)),
        },
        holdersColumn(scene, (node) => columns.rowsOf(node)),
        measured('utilization', 112, trans.__('Average of the GPUs')),
        measured('memory', 134, trans.__('Sum of the GPUs')),
        measured('power', 124, trans.__('Sum of the GPUs')),
        { ...measured('temperature', 96, trans.__('The hottest of the GPUs')), isWide: true },
        inState('free', trans.__('Free')),
        inState('idle', trans.__('Idle, held')),
      ]}
    />
  );
}

/** A table of rows by their places, sorted as the map is, with a row of sums. */
function SummedTable({
  table,
  place,
  rows,
  ...rest
}: Scene & {
  id: string;
  name: string;
  table: readonly Summed[];
  rows: Uint32Array;
  /** The selected row; `null` if none is. */
  place: number | null;
  onSelect: (row: number | null) => void;
  onOpen: (row: number) => void;
}): ComponentChild {
  const { shown, change, isNarrow, id, name, onSelect, onOpen } = rest;
  return (
    <Table
      id={id}
      name={name}
      columns={table}
      rows={rows}
      sort={shown.sort}
      onSort={(key) => change({ sort: sortedBy(shown.sort, key) })}
      selected={place === null ? -1 : rows.indexOf(place)}
      onSelect={onSelect}
      onOpen={onOpen}
      sums={[table.map(({ sum }) => sum)]}
      hasTwoLines={isNarrow}
    />
  );
}

function measuredColumn(
  { columns, totals }: Scene,
  measures: Measures,
  metric: Measured,
  width: number,
): Summed {
  const cellOf = (of: Measures, place: number, text: string): Cell => {
    const title =
      text === DASH ? (missingText(columns, metric) ?? trans.__('no reading')) : undefined;
    return metric === 'utilization'
      ? meterCell(text, shareOf(of, metric, place), metric, title)
      : { content: text, title };
  };
  return {
    sort: metric,
    label: metricLabel(metric),
    isNumber: true,
    width,
    cell: (place) => cellOf(measures, place, readingText(measures, metric, place)),
    sum: cellOf(totals, 0, totalText(totals, metric)),
  };
}

/** Who holds rows: the first owner, and how many more there are. */
function holdersColumn(
  { columns, totals }: Scene,
  rowsOf: (place: number) => ArrayLike<number>,
): Summed {
  const { missing } = columns.fleet;
  return {
    label: trans.__('Held by'),
    cell: (place) => {
      const places = Array.from(rowsOf(place)).flatMap((row) => [...columns.ownersOf(row)]);
      const owners = [...new Set(places)].flatMap((owner) => columns.owner(owner) ?? []);
      const [first, ...others] = owners.map(ownerText);
      return first === undefined
        ? textCell(missing.owners === undefined ? '' : null, missing.owners)
        : {
            content: <Name text={first} rest={others.length > 0 ? ` +${others.length}` : ''} />,
            title: [first, ...others].join('\n'),
          };
    },
    sum: missing.owners ?? trans._n('%1 user', '%2 users', totals.users, count(totals.users)),
  };
}

/** The worst condition of a GPU, or else its state. */
function worstOfGpu(columns: Columns, row: number): Cell {
  const { text, level, reason } = stateText(columns, row);
  const [worst] = [...columns.conditionsOf(row)].sort((a, b) => b.severity - a.severity);
  return level === 'critical' || worst === undefined || worst.kind === 'held_idle'
    ? stateCell(text, level, reason)
    : conditionCell(worst);
}

/** The state of a node's worst GPU, and how many GPUs are as bad. */
function worstOfNode(columns: Columns, node: number): Cell {
  const rows = [...columns.rowsOf(node)];
  const gone = rows
    .map((row) => stateText(columns, row))
    .filter(({ level }) => level === 'critical');
  const times = (many: number): string => (many > 1 ? ` ×${count(many)}` : '');
  const [first] = gone;
  if (first !== undefined) {
    const many = gone.length < rows.length ? gone.length : 1;
    return stateCell(first.text + times(many), 'critical', first.reason);
  }
  const conditions = rows
    .flatMap((row) => [...columns.conditionsOf(row)])
    .sort((a, b) => b.severity - a.severity);
  const [worst] = conditions;
  if (worst === undefined) {
    return stateCell(trans.__('OK'), 'none');
  }
  const many = conditions.filter(({ kind }) => kind === worst.kind).length;
  return stateCell(conditionText(worst.kind) + times(many), levelOf(worst.severity));
}
