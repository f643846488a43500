import { useMemo } from 'preact/hooks';

import {
  formatCount,
  DASH,
  formatPercent,
  formatSignificant,
  formatTimeWithDateUnlessToday,
  energyCost,
  markLowerBound,
} from '../../lib/format';
import { joinSentences } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { Columns } from '../../model/fleet/columns';
import { valueText } from '../../model/fleet/metric';
import {
  heldIdleTime,
  ownerRows,
  filterOwners,
  sortOwners,
  makeSummaryRows,
  unrecordedTime,
  type Grouping,
  type OwnerRow,
  type OwnerSort,
} from '../../model/fleet/owners';
import type { Answer } from '../../model/fleet/reader';
import { sortAfterClick } from '../../model/fleet/state';
import { energyUnitOf } from '../../model/fleet/totals';
import type { FleetUsage } from '../../wire';
import { ShortenedName, type Scene } from './scene';
import { Listing, meterCell, Table, textCell, type Cell, type Column } from './table';

/** If the usage data ended longer ago than this, the time at which they ended is shown. */
const RECENT_MS = 120_000;
/** If more than this share of the GPU time is unrecorded, a note about it is shown. */
const MIN_UNRECORDED_SHARE = 0.01;

/** The usage of owners in the selected time range, and their current GPUs. */
export function Usage(props: Scene & { grouping: Grouping }) {
  const { grouping, columns, answers, shown, range, now_ms, change } = props;
  const { usage } = answers;
  const { filter, owners: sort } = shown;
  const all = useMemo(
    () => ownerRows(usage.value, columns, grouping, filter),
    [usage.value, columns, grouping, filter],
  );
  const rows = useMemo(
    () => sortOwners(filterOwners(all, filter), sort.key, sort.reversed),
    [all, filter, sort],
  );
  const isOfJobs = grouping === 'jobs' || grouping === 'notebooks';
  const table = columnsFor(rows, isOfJobs, (word) => change({ view: 'map', filter: word }));
  const sums = makeSummaryRows(usage.value, grouping, rows, filter);
  return (
    <Listing
      class="gpumon-fleet-owners"
      title={trans.__('Last %1', range)}
      note={makeUsageNote(usage, grouping, now_ms, props.all.gpus[0] ?? 0)}
      isLoading={usage.isLoading}
      empty={
        all.length > 0
          ? trans.__('Nothing matches this filter.')
          : emptyTableText(grouping, usage, columns)
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
          onSort={(key) => change({ owners: sortAfterClick(sort, key) })}
          sums={sums.map((sum) => table.map(({ cell }) => cell(sum)))}
          isNarrow={props.isNarrow}
        />
      )}
    </Listing>
  );
}

/**
 * Returns the columns of the table. A click on an owner calls `choose` with the filter word for the
 * owner's GPUs.
 */
function columnsFor(
  rows: readonly OwnerRow[],
  isOfJobs: boolean,
  choose: (word: string) => void,
): Column<OwnerRow, OwnerSort>[] {
  const most = (valueOf: (row: OwnerRow) => number): number =>
    rows.reduce((highest, row) => Math.max(highest, valueOf(row) || 0), 0);
  const [gpu_s, joules] = [most((row) => row.gpu_s), most((row) => row.energy_joules)];
  // A bar compares the value of a row with the highest value of all owners. Rows with sums have no
  // bar, because a sum is higher than that.
  const share = ({ word }: OwnerRow, value: number, of: number): number =>
    word === '' ? NaN : value / of;
  const many = (value: number): string => (value === 0 ? '' : formatCount(value));
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
          markLowerBound(formatHours(row.gpu_s), row.isLowerBound),
          share(row, row.gpu_s, gpu_s),
          'utilization',
        ),
    },
    {
      sort: 'active',
      label: trans.__('Active'),
      title: trans.__('Share of the GPU-hours in which kernels ran'),
      kind: 'number',
      width: 84,
      cell: ({ active_s, gpu_s: held_s }) =>
        textCell(
          held_s > 0 && !Number.isNaN(active_s) ? formatPercent((active_s / held_s) * 100) : null,
        ),
    },
    {
      sort: 'held_idle',
      label: trans.__('Held, idle'),
      title: trans.__('GPU-hours in which no kernel ran'),
      kind: 'number-wide',
      width: 96,
      cell: (row) => {
        const text = formatHours(heldIdleTime(row));
        return textCell(text === DASH ? null : markLowerBound(text, row.isLowerBound));
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
          markLowerBound(valueText(energyUnitOf(used), used), isLowerBound),
          share(row, used, joules),
          'power',
          cost === null ? undefined : markLowerBound(cost, isLowerBound),
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
        content: idle === 0 ? '' : <span class="gpumon-table-idle">{formatCount(idle)}</span>,
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

/** Returns the name of an owner as a button. For a row of sums, returns the name as text. */
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
        <ShortenedName text={name} />
      </button>
    ),
    title: `${name}\n${action}`,
  };
}

function formatHours(seconds: number): string {
  return Number.isNaN(seconds) ? DASH : formatSignificant(seconds / 3600);
}

function makeUsageNote(
  { value, why }: Answer<FleetUsage>,
  grouping: Grouping,
  now_ms: number,
  gpus: number,
): string {
  if (why !== null || value === null) {
    return why ?? trans.__('Loading');
  }
  const { unlisted, from_ms, to_ms, unheld_gpu_s, problems } = value;
  const unrecorded_s = unrecordedTime(value, gpus);
  return joinSentences([
    now_ms - to_ms > RECENT_MS
      ? trans.__('The data ends at %1.', formatTimeWithDateUnlessToday(to_ms, now_ms))
      : null,
    ...problems,
    grouping === 'jobs' && unlisted.owners > 0
      ? trans.__(
          'Only the jobs with the most GPU time are listed. %1 more are included only in the totals.',
          formatCount(unlisted.owners),
        )
      : null,
    // The time for which nobody held the GPUs is shown only for users, because only users cover all
    // GPUs that are held. Some of these GPUs belong to no job, notebook or namespace.
    unheld_gpu_s === null || grouping !== 'users'
      ? null
      : trans.__('Held by nobody: %1 GPU-hours.', formatHours(unheld_gpu_s)),
    // Small amounts are ignored, because they result from inaccurate clocks and from the first and
    // last readings.
    grouping === 'users' && unrecorded_s > (MIN_UNRECORDED_SHARE * gpus * (to_ms - from_ms)) / 1000
      ? trans.__(
          'Not recorded: %1 of %2 GPU-hours.',
          formatHours(unrecorded_s),
          formatHours((gpus * (to_ms - from_ms)) / 1000),
        )
      : null,
  ]);
}

function emptyTableText(
  grouping: Grouping,
  { value, why, isLoading }: Answer<FleetUsage>,
  { fleet }: Columns,
): string {
  if (value === null && (isLoading || why !== null)) {
    return why ?? trans.__('Loading');
  }
  const texts = {
    users: trans.__('No GPU use by a user was recorded in this time.'),
    jobs: trans.__('No GPU use by a job, pod, container or service was recorded in this time.'),
    notebooks: trans.__('No GPU use by a notebook was recorded in this time.'),
    namespaces: trans.__('No GPU use by a namespace was recorded in this time.'),
  };
  return fleet.missing.owners ?? texts[grouping];
}
