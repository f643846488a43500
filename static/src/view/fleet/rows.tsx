/** The tables of all GPUs and of all nodes. */

import { useMemo } from 'preact/hooks';

import { formatCount, DASH, formatDuration } from '../../lib/format';
import { trans } from '../../lib/translation';
import { modelOf, type Columns, type Measures } from '../../model/fleet/columns';
import {
  conditionName,
  conditionHoverText,
  levelOf,
  ownerText,
  stateText,
} from '../../model/fleet/describe';
import {
  metricLabel,
  explainMissingReading,
  readingText,
  readingShare,
  type NumericMetric,
} from '../../model/fleet/metric';
import { rowOrder, type SortKey } from '../../model/fleet/order';
import { sortAfterClick } from '../../model/fleet/state';
import { totalText } from '../../model/fleet/totals';
import type { GpuState } from '../../wire';
import { ShortenedName, type Scene } from './scene';
import {
  meterCell,
  modelCell,
  nodeCell,
  stateCell,
  Table,
  textCell,
  type Cell,
  type Column,
} from './table';

/**
 * A column of a table whose rows are identified by index. `sum` is the cell for the sum of all
 * rows.
 */
type SummedColumn = Column<number, SortKey> & { sum: Cell | string };

/** A table of GPUs or nodes, with a row of sums. */
export function RowTable(scene: Scene & { byNode: boolean }) {
  const { byNode, columns, matches, nodes, totals, shown, selected, change } = scene;
  const order = useMemo(
    () => (byNode ? null : rowOrder(columns, shown.sort)),
    [byNode, columns, shown.sort],
  );
  const rows = useMemo(
    () => order?.filter((row) => matches === null || matches[row] === 1) ?? nodes,
    [order, matches, nodes],
  );
  const measures = byNode ? columns.nodes : columns;
  const rowsOf = (place: number): ArrayLike<number> => (byNode ? columns.rowsOf(place) : [place]);
  const nodeOf = (place: number): number => (byNode ? place : (columns.node[place] ?? 0));
  const [gpus = 0] = totals.gpus;
  const measured = (metric: NumericMetric, width: number, title: string): SummedColumn => ({
    sort: metric,
    label: metricLabel(metric),
    title: byNode ? title : undefined,
    kind: 'number',
    width,
    cell: (place) => readingCell(scene, measures, metric, place),
    sum: sumCell(scene, metric),
  });
  const inState = (state: GpuState, label: string): SummedColumn => {
    const many = (of = 0): string => (of === 0 ? '' : formatCount(of));
    return {
      label,
      kind: 'number-wide',
      width: 84,
      cell: (node) => many(columns.nodes.states[state]?.[node]),
      sum: many(totals.states[state]?.[0]),
    };
  };
  const idle: SummedColumn = {
    sort: 'idle',
    label: trans.__('Idle for'),
    title: trans.__('Time without a running kernel while processes hold memory'),
    kind: 'number-wide',
    width: 98,
    cell: (row) => {
      const idle_s = columns.idle_s[row] ?? NaN;
      return Number.isNaN(idle_s) ? '' : formatDuration(idle_s * 1000);
    },
    sum: '',
  };
  const table: SummedColumn[] = [
    {
      sort: 'name',
      label: byNode ? trans.__('Node') : trans.__('GPU'),
      width: 136,
      cell: (place) =>
        nodeCell(scene, nodeOf(place), byNode ? '' : ` / ${columns.index[place] ?? 0}`),
      sum: trans.__('Total: %1', formatCount(rows.length)),
    },
    {
      sort: byNode ? undefined : 'model',
      label: byNode ? trans.__('GPUs') : trans.__('Model'),
      kind: 'wide',
      cell: (place) =>
        modelCell(
          modelOf(columns, rowsOf(place)[0] ?? -1),
          byNode ? `${formatCount(columns.nodes.gpus[place] ?? 0)} × ` : '',
        ),
      sum: byNode ? trans._n('%1 GPU', '%2 GPUs', gpus, formatCount(gpus)) : '',
    },
    {
      sort: 'worst',
      label: byNode ? trans.__('Worst state') : trans.__('State'),
      width: 168,
      cell: (place) => makeWorstCell(scene, Array.from(rowsOf(place)), byNode),
      sum: trans.__('%1 in use', formatCount(totals.states.busy?.[0] ?? 0)),
    },
    {
      sort: byNode ? undefined : 'owner',
      label: trans.__('Held by'),
      cell: (place) => holdersCell(columns, Array.from(rowsOf(place))),
      sum: trans._n('%1 user', '%2 users', totals.users, formatCount(totals.users)),
    },
    measured('utilization', 104, trans.__('Average of the GPUs')),
    measured('memory', byNode ? 138 : 126, trans.__('Sum of the GPUs')),
    measured('power', byNode ? 138 : 104, trans.__('Sum of the GPUs')),
    { ...measured('temperature', 96, trans.__('The hottest of the GPUs')), kind: 'number-wide' },
    ...(byNode
      ? [inState('free', trans.__('Free')), inState('idle', trans.__('Idle, held'))]
      : [idle]),
  ];
  const place = selected !== null && byNode ? (columns.node[selected] ?? null) : selected;
  return (
    <Table
      id={byNode ? 'gpumon-fleet-nodes' : 'gpumon-fleet-gpus'}
      name={byNode ? trans.__('Nodes') : trans.__('GPUs')}
      columns={table}
      rows={rows}
      isNarrow={scene.isNarrow}
      sort={shown.sort}
      onSort={(key) => change({ sort: sortAfterClick(shown.sort, key) })}
      selected={place === null ? -1 : rows.indexOf(place)}
      onSelect={(row) => scene.select(row === null ? null : (rowsOf(row)[0] ?? null), true)}
      onOpen={(row) => scene.openNode(nodeOf(row))}
      sums={[table.map(({ sum }) => sum)]}
    />
  );
}

function readingCell(
  { columns }: Scene,
  measures: Measures,
  metric: NumericMetric,
  place: number,
): Cell {
  const text = readingText(measures, metric, place);
  const title =
    text === DASH ? (explainMissingReading(columns, metric) ?? trans.__('no reading')) : undefined;
  return metric === 'utilization'
    ? meterCell(text, readingShare(measures, metric, place), metric, title)
    : { content: text, title };
}

/** Returns the sum in a short form without its limit. The limit is in the hover text. */
function sumCell({ totals }: Scene, metric: NumericMetric): Cell {
  const text = totalText(totals, metric, { isShort: true });
  const title = totalText(totals, metric, { isShort: false });
  return metric === 'utilization'
    ? meterCell(text, readingShare(totals, metric, 0), metric, title)
    : { content: text, title };
}

/** Returns a cell with the first owner of the rows and the number of further owners. */
function holdersCell(columns: Columns, rows: readonly number[]): Cell {
  const places = new Set(rows.flatMap((row) => [...columns.ownersOf(row)]));
  const owners = [...places].flatMap((place) => columns.owner(place) ?? []).map(ownerText);
  const [first] = owners;
  const { owners: missing } = columns.fleet.missing;
  if (first === undefined) {
    return textCell(missing === undefined ? '' : null, missing);
  }
  const more = owners.length > 1 ? ` +${formatCount(owners.length - 1)}` : '';
  return { content: <ShortenedName text={first} rest={more} />, title: owners.join('\n') };
}

/**
 * Returns a cell with the worst state or condition of the rows. If several rows of a node have it,
 * the cell also contains their number, except for a state that all rows have.
 */
export function makeWorstCell(
  { columns, isNarrow }: Scene,
  rows: readonly number[],
  byNode: boolean,
): Cell {
  const times = (many: number): string => (byNode && many > 1 ? ` ×${formatCount(many)}` : '');
  const states = rows.map((row) => stateText(columns, row));
  const gone = states.filter(({ level }) => level === 'critical');
  const [state = states[0]] = gone;
  const conditions = rows
    .flatMap((row) => [...columns.conditionsOf(row)])
    .sort((a, b) => b.severity - a.severity);
  const [worst] = conditions;
  const isState = worst === undefined || (!byNode && worst.kind === 'held_idle');
  if (state !== undefined && (gone.length > 0 || (isState && !byNode))) {
    const many = gone.length < rows.length ? gone.length : 1;
    // On narrow screens, an idle row shows only its idle time, because there is no room for the
    // full text.
    const [first = -1] = rows;
    const isShort = isNarrow && columns.state[first] === 'idle' && gone.length === 0;
    const text = isShort
      ? trans.__('Idle %1', formatDuration((columns.idle_s[first] ?? 0) * 1000))
      : state.text;
    return stateCell(text + times(many), state.level, state.reason);
  }
  if (worst === undefined) {
    return stateCell(trans.__('OK'), 'none');
  }
  const many = conditions.filter(({ kind }) => kind === worst.kind).length;
  const isShort = isNarrow && worst.kind === 'held_idle';
  const text = (isShort ? trans.__('Idle, held') : conditionName(worst.kind)) + times(many);
  return stateCell(text, levelOf(worst.severity), conditionHoverText(worst.kind));
}
