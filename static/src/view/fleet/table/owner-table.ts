/** Who used how much in the range that was chosen, and holds what now. */

import { button, h, setAttribute, setShown, setText } from '../../../lib/dom';
import { count, DASH, percent, significant } from '../../../lib/format';
import { trans } from '../../../lib/translation';
import type { Columns } from '../../../model/fleet/columns';
import {
  heldIdle,
  ownerRows,
  sortedOwners,
  type Grouping,
  type OwnerRow,
  type OwnerSort,
} from '../../../model/fleet/owners';
import { remembered } from '../../../lib/remembered';
import type { Answered } from '../../../model/fleet/reader';
import type { FleetUsage } from '../../../wire';
import { energyText } from '../summary';
import { writeText } from './cells';
import { Table, writeMeter } from './table';

export interface OwnersContent {
  grouping: Grouping;
  columns: Columns;
  usage: Answered<FleetUsage>;
  sort: { key: OwnerSort; reversed: boolean };
  range: string;
}

export class OwnerTable {
  readonly element: HTMLElement;
  private readonly table: Table<OwnerRow, OwnerSort>;
  private readonly head = h('h2', {});
  private readonly note = h('p', { class: 'gpumon-fleet-note' });
  private readonly empty = h('p', { class: 'gpumon-empty gpumon-fleet-empty' });
  private readonly rows = remembered(ownerRows);
  private readonly sorted = remembered(sortedOwners);
  /** The most GPU time of an owner: others are drawn as a share of it. */
  private most_s = 0;
  private most_joules = 0;

  /** `choose` shows the GPUs of an owner. */
  constructor(onSort: (key: OwnerSort) => void, choose: (word: string) => void) {
    this.table = new Table<OwnerRow, OwnerSort>({
      id: 'gpumon-fleet-owners',
      name: trans.__('Usage'),
      columns: [
        { sort: 'name', label: trans.__('Name'), kind: 'name', write: (cell, row) => writeOwner(cell, row, choose) },
        {
          label: trans.__('User'),
          kind: 'text',
          wide: true,
          width: 130,
          write: (cell, row) => writeText(cell, row.user ?? ''),
        },
        {
          sort: 'gpu_hours',
          label: trans.__('GPU-hours'),
          title: trans.__('Time in which GPUs were held, summed over GPUs'),
          kind: 'number',
          width: 150,
          write: (cell, { gpu_s }) => writeMeter(cell, hours(gpu_s), gpu_s / this.most_s, 'var(--gpumon-utilization)'),
        },
        {
          sort: 'active',
          label: trans.__('Active'),
          title: trans.__('Share of that time in which kernels ran'),
          kind: 'number',
          wide: true,
          width: 84,
          write: (cell, { active_s, gpu_s }) =>
            writeText(cell, gpu_s > 0 && !Number.isNaN(active_s) ? percent((active_s / gpu_s) * 100) : null),
        },
        {
          sort: 'held_idle',
          label: trans.__('Held, idle'),
          title: trans.__('GPU-hours in which no kernel ran'),
          kind: 'number',
          wide: true,
          width: 96,
          write: (cell, row) => writeText(cell, Number.isNaN(heldIdle(row)) ? null : hours(heldIdle(row))),
        },
        {
          sort: 'energy',
          label: trans.__('Energy'),
          kind: 'number',
          width: 150,
          write: (cell, { energy_joules }) =>
            writeMeter(
              cell,
              Number.isNaN(energy_joules) ? DASH : energyText(energy_joules).join('\u00a0'),
              energy_joules / this.most_joules,
              'var(--gpumon-power)',
            ),
        },
        {
          sort: 'gpus',
          label: trans.__('GPUs now'),
          kind: 'number',
          wide: true,
          width: 92,
          write: (cell, { gpus }) => setText(cell, gpus === 0 ? '' : count(gpus)),
        },
        {
          sort: 'idle',
          label: trans.__('Idle now'),
          title: trans.__('GPUs that are held now, and have been idle for minutes'),
          kind: 'number',
          wide: true,
          width: 84,
          write: (cell, { idle }) => {
            setText(cell, idle === 0 ? '' : count(idle));
            setAttribute(cell, 'data-warn', idle > 0 ? '' : null);
          },
        },
        {
          label: trans.__('Nodes now'),
          kind: 'number',
          wide: true,
          width: 96,
          write: (cell, { nodes }) => setText(cell, nodes === 0 ? '' : count(nodes)),
        },
      ],
      onSort,
    });
    this.element = h(
      'div',
      { class: 'gpumon-fleet-owners' },
      h('div', { class: 'gpumon-fleet-caption' }, this.head, this.note),
      this.table.element,
      this.empty,
    );
  }

  update({ grouping, columns, usage, sort, range }: OwnersContent): void {
    const rows = this.sorted(this.rows(usage.value, columns, grouping), sort.key, sort.reversed);
    this.most_s = rows.reduce((most, { gpu_s }) => (gpu_s > most ? gpu_s : most), 0);
    this.most_joules = rows.reduce((most, { energy_joules }) => (energy_joules > most ? energy_joules : most), 0);
    setText(this.head, trans.__('Last %1', range));
    setText(this.note, noteOf(usage));
    setAttribute(this.element, 'aria-busy', String(usage.isLoading));
    setShown(this.table.element, rows.length > 0);
    setShown(this.empty, rows.length === 0);
    setText(this.empty, emptyText(grouping, usage, columns));
    this.table.update({ count: rows.length, rowAt: (place) => rows[place] ?? NOBODY, sort, selected: -1 });
  }

  dispose(): void {
    this.table.dispose();
  }
}

const NOBODY: OwnerRow = {
  key: '',
  name: '',
  user: null,
  kind: null,
  word: '',
  gpu_s: NaN,
  active_s: NaN,
  energy_joules: NaN,
  gpus: 0,
  idle: 0,
  nodes: 0,
};

function writeOwner(cell: HTMLElement, { name, word, gpus }: OwnerRow, choose: (word: string) => void): void {
  let link = cell.firstElementChild;
  if (!(link instanceof HTMLButtonElement)) {
    const made = button({ class: 'gpumon-table-owner' }, () => choose(made.dataset.word ?? ''));
    cell.replaceChildren(made);
    link = made;
  }
  if (link instanceof HTMLButtonElement) {
    link.dataset.word = word;
    link.disabled = gpus === 0;
    setText(link, name);
    setAttribute(link, 'title', gpus === 0 ? trans.__('Holds no GPU now') : trans.__('Show these GPUs on the map'));
  }
}

function noteOf({ value, why }: Answered<FleetUsage>): string {
  if (why !== null) {
    return why;
  }
  if (value === null) {
    return trans.__('Loading');
  }
  const notes = [...value.problems];
  if (value.owners_total > value.owners.length) {
    notes.push(
      trans.__('The %1 with most GPU time of %2 are told.', count(value.owners.length), count(value.owners_total)),
    );
  }
  if (value.unheld_gpu_s !== null) {
    notes.push(trans.__('Held by nobody: %1 GPU-hours.', hours(value.unheld_gpu_s)));
  }
  return notes.join(' ');
}

function emptyText(grouping: Grouping, { value, why, isLoading }: Answered<FleetUsage>, { fleet }: Columns): string {
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

function hours(seconds: number): string {
  return Number.isNaN(seconds) ? DASH : significant(seconds / 3600);
}
