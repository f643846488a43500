/** Texts about the cost of a cell. */

import {
  DASH,
  formatEnergy,
  formatMemorySize,
  formatMemoryNumber,
  formatPreciseDuration,
  appendEnergyCost,
} from '../lib/format';
import { joinParts } from '../lib/text';
import { trans } from '../lib/translation';
import type { StoredCost } from '../wire';
import type { CellCost } from './cell-cost';
import {
  describeLimit,
  describeLimitShares,
  isMainCauseClear,
  type MeasuredLimits,
} from './limits';

/** A part of the line below a cell, with a hover text. */
export interface CellPart {
  id: 'elapsed' | 'gpu' | 'peak' | 'energy' | 'limit';
  text: string;
  /** A shorter text for a table column whose heading already contains the name of the part. */
  brief: string;
  title: string;
  /** The value in the part's unit. */
  value: number;
  own: string;
}

/**
 * The relative difference between two runs up to which they count as equal. Such differences are
 * normal between identical runs.
 */
const MAX_NOISE = 0.02;

/**
 * Returns the parts of a cost: `12.4 s`, `GPU 9.8 s`, `peak 61.0 GiB (+8.2)`, `6.1 kJ` and
 * `host-bound 62 %`.
 */
export function describeCell(cost: Omit<CellCost, 'started_ms' | 'ended_ms'>): CellPart[] {
  const elapsed = formatPreciseDuration(cost.duration_s * 1000);
  const where = cost.gpus.map(String).join(', ');
  const title = trans.__('Elapsed time of the cell');
  const parts: CellPart[] = [
    { id: 'elapsed', text: elapsed, brief: elapsed, title, value: cost.duration_s, own: elapsed },
  ];
  if (cost.gpu_s !== null) {
    const brief = formatPreciseDuration(cost.gpu_s * 1000);
    const title = gpuTimeTitle(cost, where);
    parts.push({
      id: 'gpu',
      text: trans.__('GPU %1', brief),
      brief,
      title,
      value: cost.gpu_s,
      own: brief,
    });
  }
  if (cost.peak_memory_bytes !== null) {
    const own = formatMemorySize(cost.peak_memory_bytes);
    const brief = `${own}${formatMemoryChange(cost.memory_change_bytes)}`;
    parts.push({
      id: 'peak',
      text: trans.__('peak %1', brief),
      brief,
      title: trans.__(
        'Peak memory of this notebook on GPU %1, and the change since the cell started',
        where,
      ),
      value: cost.peak_memory_bytes,
      own,
    });
  }
  if (cost.energy_joules !== null) {
    const own = formatEnergy(cost.energy_joules);
    const amount = appendEnergyCost(own, cost.energy_joules);
    const text = cost.shared ? trans.__('%1 shared', amount) : amount;
    const title = cost.shared
      ? trans.__('Energy of GPU %1 while the cell ran, including other processes', where)
      : trans.__('Energy of GPU %1 while the cell ran', where);
    parts.push({ id: 'energy', text, brief: text, title, value: cost.energy_joules, own });
  }
  return [...parts, ...describeLimits(cost.limits, where)];
}

/** Returns the part with the main cause that limited the GPUs, if there is one. */
function describeLimits(limits: MeasuredLimits | null, where: string): CellPart[] {
  const [main] = limits?.shares ?? [];
  if (limits === null || main === undefined) {
    return [];
  }
  const limit = describeLimit(main, limits.evidence);
  if (limit === null) {
    return [];
  }
  const all = trans.__(
    'What limited the cell on GPU %1: %2',
    where,
    describeLimitShares(limits.shares),
  );
  const text = limit.text.toLowerCase();
  const reasons = isMainCauseClear(limits.shares) ? [limit.evidence, limit.advice] : [];
  const title = joinParts([all, ...reasons], '\n');
  return [{ id: 'limit', text, brief: text, title, value: main.percent, own: text }];
}

/**
 * Describes a stored cost in the same parts as a measured cost. It is the cost of the cell's last
 * run if `isLastRun` is set, and otherwise that of an earlier run.
 */
export function describeStoredCost({ gpus, ...cost }: StoredCost, isLastRun: boolean): CellPart[] {
  const where = joinParts(
    [...new Set(gpus)].map((name) => prefixWithCount(name, gpus)),
    ', ',
  );
  const title = isLastRun ? lastRunTitle(where) : earlierRunTitle(where);
  const parts = describeCell({ ...cost, gpus: [], limits: null });
  return parts.map((part) => ({ ...part, title }));
}

/**
 * Finds the part of an earlier run's cost that corresponds to the given part. Returns it if its
 * value differs noticeably, and otherwise `null`.
 */
export function findChangedEarlierPart(
  { id, value, own }: CellPart,
  earlier: readonly CellPart[],
): CellPart | null {
  const same = earlier.find((part) => part.id === id);
  const differs =
    same !== undefined &&
    same.own !== own &&
    Math.abs(same.value - value) > MAX_NOISE * Math.max(Math.abs(same.value), Math.abs(value));
  return differs ? same : null;
}

function lastRunTitle(where: string): string {
  return where === ''
    ? trans.__('Last run, stored in the notebook')
    : trans.__('Last run on %1, stored in the notebook', where);
}

function earlierRunTitle(where: string): string {
  return where === ''
    ? trans.__('Earlier run, stored in the notebook')
    : trans.__('Earlier run on %1, stored in the notebook', where);
}

/** Returns a name with its number of occurrences: `NVIDIA H200` or `2 × NVIDIA H200`. */
function prefixWithCount(name: string, names: readonly string[]): string {
  const count = names.filter((other) => other === name).length;
  return count === 1 ? name : `${count} × ${name}`;
}

function gpuTimeTitle({ gpus }: Pick<CellCost, 'gpus'>, where: string): string {
  return gpus.length > 1
    ? trans.__(
        'Time in which kernels of this notebook ran on GPU %1, summed over GPUs, from driver samples',
        where,
      )
    : trans.__('Time in which kernels of this notebook ran on GPU %1, from driver samples', where);
}

/** Returns a change of memory such as ` (+8.2)`. It is empty if the memory has not changed. */
function formatMemoryChange(bytes: number | null): string {
  if (bytes === null) {
    return ` (${DASH})`;
  }
  const number = formatMemoryNumber(Math.abs(bytes));
  return /[1-9]/.test(number) ? ` (${bytes < 0 ? '−' : '+'}${number})` : '';
}
