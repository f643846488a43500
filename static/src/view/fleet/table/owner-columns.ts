/** The columns of who used how much. */

import { button, setAttribute, setText } from '../../../lib/dom';
import { count, DASH, percent, significant } from '../../../lib/format';
import { trans } from '../../../lib/translation';
import { energyCost } from '../../../model/energy-price';
import { atLeast, valueText } from '../../../model/fleet/metric';
import { heldIdle, type OwnerRow, type OwnerSort } from '../../../model/fleet/owners';
import { energyUnitOf } from '../../../model/fleet/units';
import { writeText } from './cells';
import { writeMeter, type Column } from './table';

/** What the largest owner has: others are drawn as a share of it. */
export interface Most {
  gpu_s: number;
  joules: number;
}

const USER = (): Column<OwnerRow, OwnerSort> => ({
  label: trans.__('User'),
  kind: 'text',
  wide: true,
  width: 130,
  write: (cell, row) => writeText(cell, row.user ?? ''),
});

/** `choose` shows the GPUs of an owner; users need no column that says whose they are. */
export function ownerColumns(
  withUser: boolean,
  most: () => Most,
  choose: (word: string) => void,
): Column<OwnerRow, OwnerSort>[] {
  return [
    {
      sort: 'name',
      label: trans.__('Name'),
      kind: 'name',
      write: (cell, row) => writeOwner(cell, row, choose),
    },
    ...(withUser ? [USER()] : []),
    {
      sort: 'gpu_hours',
      label: trans.__('GPU-hours'),
      title: trans.__('Time in which GPUs were held, summed over GPUs'),
      kind: 'number',
      width: 150,
      narrow: 84,
      write: (cell, row) =>
        writeMeter(
          cell,
          atLeast(hours(row.gpu_s), row.isLowerBound),
          shareOf(row, row.gpu_s, most().gpu_s),
          'var(--gpumon-utilization)',
        ),
    },
    {
      sort: 'active',
      label: trans.__('Active'),
      title: trans.__('Share of that time in which kernels ran'),
      kind: 'number',
      wide: true,
      width: 84,
      write: (cell, { active_s, gpu_s }) =>
        writeText(
          cell,
          gpu_s > 0 && !Number.isNaN(active_s) ? percent((active_s / gpu_s) * 100) : null,
        ),
    },
    {
      sort: 'held_idle',
      label: trans.__('Held, idle'),
      title: trans.__('GPU-hours in which no kernel ran'),
      kind: 'number',
      wide: true,
      width: 96,
      write: (cell, row) =>
        writeText(
          cell,
          Number.isNaN(heldIdle(row)) ? null : atLeast(hours(heldIdle(row)), row.isLowerBound),
        ),
    },
    {
      sort: 'energy',
      label: trans.__('Energy'),
      kind: 'number',
      width: 150,
      narrow: 84,
      write: (cell, row) => {
        writeMeter(
          cell,
          atLeast(valueText(energyUnitOf(row.energy_joules), row.energy_joules), row.isLowerBound),
          shareOf(row, row.energy_joules, most().joules),
          'var(--gpumon-power)',
        );
        const cost = energyCost(row.energy_joules);
        setAttribute(cell, 'title', cost === null ? null : atLeast(cost, row.isLowerBound));
      },
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
  ];
}

/** Sums have no bar, because they are larger than any single owner's amount. */
function shareOf({ word }: OwnerRow, value: number, most: number): number {
  return word === '' ? NaN : value / most;
}

function writeOwner(
  cell: HTMLElement,
  { name, word, gpus }: OwnerRow,
  choose: (word: string) => void,
): void {
  if (word === '') {
    setText(cell, name);
    return;
  }
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
    setAttribute(
      link,
      'title',
      gpus === 0 ? trans.__('Holds no GPU now') : trans.__('Show these GPUs on the map'),
    );
  }
}

export function hours(seconds: number): string {
  return Number.isNaN(seconds) ? DASH : significant(seconds / 3600);
}
