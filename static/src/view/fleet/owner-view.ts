/** Who used how much in the range that was chosen, and holds what now. */

import { h, setAttribute, setShown, setText } from '../../lib/dom';
import { count, since } from '../../lib/format';
import { remembered } from '../../lib/remembered';
import { sentences } from '../../lib/text';
import { trans } from '../../lib/translation';
import type { Columns } from '../../model/fleet/columns';
import {
  ownerRows,
  ownersMatching,
  sortedOwners,
  sumRows,
  type Grouping,
  type OwnerRow,
  type OwnerSort,
} from '../../model/fleet/owners';
import type { Answered } from '../../model/fleet/reader';
import type { FleetUsage } from '../../wire';
import { hours, ownerColumns, type Most } from './table/owner-columns';
import { Table } from './table/table';

export interface OwnersContent {
  grouping: Grouping;
  columns: Columns;
  usage: Answered<FleetUsage>;
  filter: string;
  sort: { key: OwnerSort; reversed: boolean };
  range: string;
  now_ms: number;
}

export class OwnerView {
  readonly element: HTMLElement;
  private readonly byUser: Table<OwnerRow, OwnerSort>;
  private readonly withUser: Table<OwnerRow, OwnerSort>;
  private readonly head = h('h2', {});
  private readonly note = h('p', { class: 'gpumon-fleet-note' });
  private readonly empty = h('p', { class: 'gpumon-empty gpumon-fleet-empty' });
  private readonly rows = remembered(ownerRows);
  private readonly matching = remembered(ownersMatching);
  private readonly sorted = remembered(sortedOwners);
  private most: Most = { gpu_s: 0, joules: 0 };

  /** `choose` shows the GPUs of an owner. */
  constructor(onSort: (key: OwnerSort) => void, choose: (word: string) => void) {
    const tableOf = (withUser: boolean): Table<OwnerRow, OwnerSort> =>
      new Table<OwnerRow, OwnerSort>({
        id: withUser ? 'gpumon-fleet-jobs' : 'gpumon-fleet-users',
        name: trans.__('Usage'),
        columns: ownerColumns(withUser, () => this.most, choose),
        onSort,
      });
    this.byUser = tableOf(false);
    this.withUser = tableOf(true);
    this.element = h(
      'div',
      { class: 'gpumon-fleet-owners' },
      h('div', { class: 'gpumon-fleet-caption' }, this.head, this.note),
      this.byUser.element,
      this.withUser.element,
      this.empty,
    );
  }

  update({ grouping, columns, usage, filter, sort, range, now_ms }: OwnersContent): void {
    const all = this.rows(usage.value, columns, grouping, filter);
    const rows = this.sorted(this.matching(all, filter), sort.key, sort.reversed);
    this.most = {
      gpu_s: rows.reduce((most, { gpu_s }) => (gpu_s > most ? gpu_s : most), 0),
      joules: rows.reduce(
        (most, { energy_joules }) => (energy_joules > most ? energy_joules : most),
        0,
      ),
    };
    setText(this.head, trans.__('Last %1', range));
    setText(this.note, noteOf(usage, grouping, now_ms));
    setAttribute(this.element, 'aria-busy', String(usage.isLoading));
    const isWith = grouping === 'jobs' || grouping === 'notebooks';
    const [shown, hidden] = isWith ? [this.withUser, this.byUser] : [this.byUser, this.withUser];
    const sums = sumRows(usage.value, grouping, rows, filter);
    const isEmpty = rows.length + sums.length === 0;
    setShown(shown.element, !isEmpty);
    setShown(hidden.element, false);
    setShown(this.empty, isEmpty);
    setText(
      this.empty,
      all.length > 0
        ? trans.__('Nothing matches this filter.')
        : emptyText(grouping, usage, columns),
    );
    shown.update({
      count: rows.length,
      rowAt: (place) => rows[place],
      sort,
      sums,
    });
  }

  dispose(): void {
    this.byUser.dispose();
    this.withUser.dispose();
  }
}

/** If usage ended longer ago than this, its end is shown. */
const RECENT_MS = 120_000;

function noteOf({ value, why }: Answered<FleetUsage>, grouping: Grouping, now_ms: number): string {
  if (why !== null) {
    return why;
  }
  if (value === null) {
    return trans.__('Loading');
  }
  const notes = [...value.problems];
  const { unlisted, to_ms } = value;
  if (now_ms - to_ms > RECENT_MS) {
    notes.unshift(trans.__('Until %1.', since(to_ms, now_ms)));
  }
  if (grouping === 'jobs' && unlisted.owners > 0) {
    notes.push(
      trans.__(
        'The jobs with most GPU time are listed; %1 more are only in the sums. A filter finds none of these.',
        count(unlisted.owners),
      ),
    );
  }
  if (value.unheld_gpu_s !== null) {
    notes.push(trans.__('Held by nobody: %1 GPU-hours.', hours(value.unheld_gpu_s)));
  }
  return sentences(notes);
}

function emptyText(
  grouping: Grouping,
  { value, why, isLoading }: Answered<FleetUsage>,
  { fleet }: Columns,
): string {
  if (value === null && (isLoading || why !== null)) {
    return why ?? trans.__('Loading');
  }
  if (fleet.missing.owners !== undefined) {
    return fleet.missing.owners;
  }
  return {
    users: trans.__('No user is known to have used a GPU in this time.'),
    jobs: trans.__('No job, pod, container or service is known to have used a GPU in this time.'),
    notebooks: trans.__('No notebook is known to have used a GPU in this time.'),
    namespaces: trans.__('No namespace is known to have used a GPU in this time.'),
  }[grouping];
}
