import type { ComponentChild } from 'preact';
import { useMemo } from 'preact/hooks';

import { count, DASH, percent, significant, formatSince } from '../../lib/format';
import { sentences } from '../../lib/text';
import { trans } from '../../lib/translation';
import { energyCost } from '../../model/energy-price';
import type { Columns } from '../../model/fleet/columns';
import { atLeast, valueText } from '../../model/fleet/metric';
import {
  heldIdle,
  ownerRows,
  ownersMatching,
  sortedOwners,
  sumRows,
  unrecordedTime,
  type Grouping,
  type OwnerRow,
  type OwnerSort,
} from '../../model/fleet/owners';
import type { Answered } from '../../model/fleet/reader';
import { sortedBy } from '../../model/fleet/state';
import { energyUnitOf } from '../../model/fleet/units';
import type { FleetUsage } from '../../wire';
import { Name, type Scene } from './scene';
import { Listing, meterCell, Table, textCell, type Cell, type Column } from './table';

/** The minimum age of the last usage for its time to be shown. */
const RECENT_MS = 120_000;
/** The minimum share of unrecorded GPU time that is mentioned. */
const UNRECORDED_LEAST = 0.01;

/** The usage of owners in the selected time range, and their current GPUs. */
export function Usage(props: Scene & { grouping: Grouping }): ComponentChild {
  const { grouping, columns, answers, shown, range, now_ms, change } = props;
  const { usage } = answers;
  const { filter, owners: sort } = shown;
  const all = useMemo(
    () => ownerRows(usage.value, columns, grouping, filter),
    [usage.value, columns, grouping, filter],
  );
  const rows = useMemo(
    () => sortedOwners(ownersMatching(all, filter), sort.key, sort.reversed),
    [all, filter, sort],
  );
  const isOfJobs = grouping === 'jobs' || grouping === 'notebooks';
  const table = columnsFor(rows, isOfJobs, (word) => change({ view: 'map', filter: word }));
  const sums = sumRows(usage.value, grouping, rows, filter);
  return (
    <Listing
      class="gpumon-fleet-owners"
      title={trans.__('Last %1', range)}
      note={noteOf(usage, grouping, now_ms, props.all.gpus[0] ?? 0)}
      isLoading={usage.isLoading}
      empty={
        all.length > 0
          ? trans.__('Nothing matches this filter.')
          : emptyText(grouping, usage, columns)
      }
    >
      {rows.length + sums.length === 0 ? null : (
        <Table
          key={isOfJobs}
          id={isOfJobs ? 'gpumon-fleet-jobs' : 'gpumon-fleet-users'}
          name={trans.__('Usage')}
          columns={table}
          rows={rows}
          sort={sort}
          onSort={(key) => change({ owners: sortedBy(sort, key) })}
          sums={sums.map((sum) => table.map(({ cell }) => cell(sum)))}
          isNarrow={props.isNarrow}
        />
      )}
    </Listing>
  );
}

/** Returns the columns of the table. `choose` shows the GPUs of an owner. */
function columnsFor(
  rows: readonly OwnerRow[],
  isOfJobs: boolean,
  choose: (word: string) => void,
): Column<OwnerRow, OwnerSort>[] {
  const most = (valueOf: (row: OwnerRow) => number): number =>
    rows.reduce((highest, row) => Math.max(highest, valueOf(row) || 0), 0);
  const [gpu_s, joules] = [most((row) => row.gpu_s), most((row) => row.energy_joules)];
  // Sums have no bar, because they exceed every owner's amount.
  const share = ({ word }: OwnerRow, value: number, of: number): number =>
    word === '' ? NaN : value / of;
  const many = (value: number): string => (value === 0 ? '' : count(value));
  const user: Column<OwnerRow, OwnerSort> = {
    label: trans.__('User'),
    width: 130,
    cell: (row) => textCell(row.user ?? ''),
  };
  return [
    { sort: 'name', label: trans.__('Name'), cell: (row) => ownerCell(row, choose) },
    ...(isOfJobs ? [user] : []),
    {
      sort: 'gpu_hours',
      label: trans.__('GPU-hours'),
      title: trans.__('Time in which GPUs were held, summed over GPUs'),
      kind: 'number',
      width: 150,
      cell: (row) =>
        meterCell(
          atLeast(formatHours(row.gpu_s), row.isLowerBound),
          share(row, row.gpu_s, gpu_s),
          'utilization',
        ),
    },
    {
      sort: 'active',
      label: trans.__('Active'),
      title: trans.__('Share of that time in which kernels ran'),
      kind: 'number',
      width: 84,
      cell: ({ active_s, gpu_s: held_s }) =>
        textCell(held_s > 0 && !Number.isNaN(active_s) ? percent((active_s / held_s) * 100) : null),
    },
    {
      sort: 'held_idle',
      label: trans.__('Held, idle'),
      title: trans.__('GPU-hours in which no kernel ran'),
      kind: 'number-wide',
      width: 96,
      cell: (row) => {
        const text = formatHours(heldIdle(row));
        return textCell(text === DASH ? null : atLeast(text, row.isLowerBound));
      },
    },
    {
      sort: 'energy',
      label: trans.__('Energy'),
      kind: 'number',
      width: 150,
      cell: (row) => {
        const { energy_joules: used, isLowerBound } = row;
        const cost = energyCost(used);
        return meterCell(
          atLeast(valueText(energyUnitOf(used), used), isLowerBound),
          share(row, used, joules),
          'power',
          cost === null ? undefined : atLeast(cost, isLowerBound),
        );
      },
    },
    {
      sort: 'gpus',
      label: trans.__('GPUs now'),
      kind: 'number',
      width: 92,
      cell: ({ gpus }) => many(gpus),
    },
    {
      sort: 'idle',
      label: trans.__('Idle now'),
      title: trans.__('GPUs that are held now, and have been idle for minutes'),
      kind: isOfJobs ? 'number-wide' : 'number',
      width: 84,
      cell: ({ idle }) => ({
        content: idle === 0 ? '' : <span class="gpumon-table-idle">{count(idle)}</span>,
      }),
    },
    {
      label: trans.__('Nodes now'),
      kind: 'number-wide',
      width: 96,
      cell: ({ nodes }) => many(nodes),
    },
  ];
}

/** Returns the name of an owner as a button, or the name of a sum as text. */
function ownerCell({ name, word, gpus }: OwnerRow, choose: (word: string) => void): Cell | string {
  if (word === '') {
    return name;
  }
  const action = gpus === 0 ? trans.__('Holds no GPU now') : trans.__('Show these GPUs on the map');
  return {
    content: (
      <button
        type="button"
        class="gpumon-table-owner"
        disabled={gpus === 0}
        onClick={() => choose(word)}
      >
        <Name text={name} />
      </button>
    ),
    title: `${name}\n${action}`,
  };
}

function formatHours(seconds: number): string {
  return Number.isNaN(seconds) ? DASH : significant(seconds / 3600);
}

function noteOf(
  { value, why }: Answered<FleetUsage>,
  grouping: Grouping,
  now_ms: number,
  gpus: number,
): string {
  if (why !== null || value === null) {
    return why ?? trans.__('Loading');
  }
  const { unlisted, from_ms, to_ms, unheld_gpu_s, problems } = value;
  const unrecorded_s = unrecordedTime(value, gpus);
  return sentences([
    now_ms - to_ms > RECENT_MS ? trans.__('Until %1.', formatSince(to_ms, now_ms)) : null,
    ...problems,
    grouping === 'jobs' && unlisted.owners > 0
      ? trans.__(
          'Only the jobs with most GPU time are listed; %1 more are only in the sums.',
          count(unlisted.owners),
        )
      : null,
    // Jobs, notebooks and namespaces do not cover all of the users' GPUs.
    unheld_gpu_s === null || grouping !== 'users'
      ? null
      : trans.__('Held by nobody: %1 GPU-hours.', formatHours(unheld_gpu_s)),
    // Small differences are due to clocks and the ends of readings.
    grouping === 'users' && unrecorded_s > (UNRECORDED_LEAST * gpus * (to_ms - from_ms)) / 1000
      ? trans.__(
          'Not recorded: %1 of %2 GPU-hours.',
          formatHours(unrecorded_s),
          formatHours((gpus * (to_ms - from_ms)) / 1000),
        )
      : null,
  ]);
}

function emptyText(
  grouping: Grouping,
  { value, why, isLoading }: Answered<FleetUsage>,
  { fleet }: Columns,
): string {
  if (value === null && (isLoading || why !== null)) {
    return why ?? trans.__('Loading');
  }
  const texts = {
    users: trans.__('No user is known to have used a GPU in this time.'),
    jobs: trans.__('No job, pod, container or service is known to have used a GPU in this time.'),
    notebooks: trans.__('No notebook is known to have used a GPU in this time.'),
    namespaces: trans.__('No namespace is known to have used a GPU in this time.'),
  };
  return fleet.missing.owners ?? texts[grouping];
}
